#include "storage/schema/hashed_event.h"

#include <string.h>

unsigned visitor_partition(const struct partitions *partitions, const struct visitor_id *visitor)
{
    /* A visitor's id is a uniform hash already, and the site is part of what was hashed. */
    uint64_t hash;
    memcpy(&hash, visitor->bytes + 8, sizeof(hash));
    return partition_of_visitor(partitions, hash);
}

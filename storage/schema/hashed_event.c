#include "storage/schema/hashed_event.h"

#include <string.h>

unsigned visitor_partition(const struct partitions *partitions, const struct visitor_id *visitor)
{
    /* A visitor's id is a uniform hash already, and the site is part of what was hashed. */
    uint64_t hash;
    memcpy(&hash, visitor->bytes + 8, sizeof(hash));
    return partition_of(partitions, hash);
}

void row_make(const struct event *event, const struct secret *secret, enum rotation rotation,
    const struct partitions *partitions, const struct site_zones *zones, struct row *ret)
{
    *ret = (struct row){
        .at_s = event->at_s,
        .site = event->site,
        .page = event->page,
        .user = event->user,
        .actions = event->actions,
        .n_actions = event->n_actions,
        .zone = site_zones_get(zones, event->site),
        .page_hash = page_hash(event->site, event->page),
        .site_hash = page_hash(event->site, (struct slice){NULL, 0}),
    };
    ret->has_visitor = identity_visitor(secret, rotation, event, &ret->visitor);
    ret->has_address = identity_address(secret, event, &ret->address);
    ret->page_partition = (uint16_t)partition_of(partitions, ret->page_hash);
    ret->site_partition = (uint16_t)partition_of(partitions, ret->site_hash);
    if (ret->has_visitor) {
        ret->visitor_partition = (uint16_t)visitor_partition(partitions, &ret->visitor);
    }
}

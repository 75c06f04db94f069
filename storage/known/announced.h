/* announced.h - members that a partition's sets `open` and `sites` have for sure, so that they need
 * not be added again.
 *
 * Layer: storage.  Belongs to the thread of a lane (fold/lanes.h).  Remembers a few members (a busy
 * service has few: the current hour of each site).  All are forgotten when the connection was lost
 * or the data may have gone back.
 */
#ifndef STORAGE_KNOWN_ANNOUNCED_H
#define STORAGE_KNOWN_ANNOUNCED_H

#include <stdbool.h>

#include "storage/base/slice.h"

#define ANNOUNCED_MAX 64 /* searched one by one */

struct announced {
    struct announced_member {
        unsigned partition;
        struct slice member; /* owned */
    } members[ANNOUNCED_MAX];
    size_t n, oldest; /* oldest: the next to be replaced */
};

/* Was @member announced?  False is no proof: only the latest members are remembered. */
bool announced_has(const struct announced *announced, unsigned partition, struct slice member);

/* Remember that @member, of which a copy is made, was announced.  If memory is out, the member is
 * announced again, which does no harm. */
void announced_add(struct announced *announced, unsigned partition, struct slice member);
void announced_forget(struct announced *announced);

#endif

/* announced.h - what is in a partition's sets `open` and `sites` for sure, so that it need not be
 * added again.
 *
 * Layer: storage.  Belongs to the fold's thread.  Remembers a few members (a busy service has
 * few: the current hour of each site); forgotten whenever the connection was lost or the data may
 * have gone back.
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

/* Was it announced?  False is no proof: only the latest are remembered. */
bool announced_has(const struct announced *announced, unsigned partition, struct slice member);
/* Remember; no memory: it is announced again, which does no harm. */
void announced_add(struct announced *announced, unsigned partition, struct slice member);
void announced_forget(struct announced *announced);

#endif

/* moved_zones.h - sites whose reporting zone would change: allowed only while they have no data.
 *
 * Layer: storage, private to session.c.  One owner.
 * Each partition keeps the zones of all sites beside its state (field zones of t:{p}:rolled, as
 * text).  Whether a site has data is known in its own partition, that of its whole-site page: its
 * name is in the set of sites there from the first event on.
 */
#ifndef STORAGE_CORE_MOVED_ZONES_H
#define STORAGE_CORE_MOVED_ZONES_H

#include "storage/core/core.h"

struct zone_move {
    char site[EVENT_SITE_MAX + 1];
    char theirs[ZONE_NAME_MAX + 1], ours[ZONE_NAME_MAX + 1];
    unsigned partition;
};

struct zone_moves {
    struct zone_move *moves; /* owned */
    size_t n, capacity;
};

void zone_moves_release(struct zone_moves *moves);

/* Add the sites of @partition that have another zone in @stored, what that partition keeps, than
 * here.  False: it is none of ours, or no memory. */
bool zone_moves_add(
    struct zone_moves *moves, const struct core *core, unsigned partition, struct slice stored);

/* Write the question for each move: has the site data?  The answers are 0 or 1, in order. */
void zone_moves_ask(const struct zone_moves *moves, const struct core *core, struct buffer *out);

/* Write the names of the sites of @partition, as words.  Returns their number. */
size_t zone_moves_put(const struct zone_moves *moves, unsigned partition, struct buffer *out);

#endif

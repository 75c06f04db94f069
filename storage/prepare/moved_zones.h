/* moved_zones.h - sites whose time zone would change: allowed only while they have no data.
 *
 * Layer: storage, private to prepare.c.  Not thread-safe: one owner.
 *
 * The counts of a site are cut in the site's time zone, so a site that has data cannot get another
 * zone.  At the start of a process its list of zones is compared with the list that each partition
 * keeps.  A move is a site whose zones differ.  Whether the site has data is known in one
 * partition, that of its whole-site page: its name is in the set t:{p}:sites from the first event
 * on that is counted.  Events that only stand in a log are not cut yet: such a site may move, and
 * its events will be counted in the new zone.
 */
#ifndef STORAGE_PREPARE_MOVED_ZONES_H
#define STORAGE_PREPARE_MOVED_ZONES_H

#include "storage/core/core.h"
#include "storage/session/asks.h"

struct zone_move {
    char site[EVENT_SITE_MAX + 1];
    char theirs[ZONE_NAME_MAX + 1], ours[ZONE_NAME_MAX + 1]; /* zones: the data's, this process's */
    unsigned partition;
};

/* A list of moves.  Zeroed: it is empty. */
struct zone_moves {
    struct zone_move *moves; /* owned */
    size_t n, capacity;
};

void zone_moves_release(struct zone_moves *moves);

/* Add the sites of @partition whose zone in @stored, the partition's list, differs from that of
 * this process.  False: @stored is no list of zones, or memory is short. */
bool zone_moves_add(struct zone_moves *moves, const struct core *core, unsigned partition,
    struct slice stored) MUST_CHECK;

/* Write a command for each move that asks whether the site has data.  The replies are 0 or 1, in
 * the order of the moves. */
void zone_moves_ask(const struct zone_moves *moves, const struct core *core, struct asks *asks);

/* Write the names of the sites of @partition that move, as words.  Returns their number. */
size_t zone_moves_put(const struct zone_moves *moves, unsigned partition, struct buffer *out);

#endif

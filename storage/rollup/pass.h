/* pass.h - complete the buckets of a level that end at one instant, in one partition, from their
 * parts: an hour from its minutes, a day from its hours, a month from its days.
 *
 * Layer: storage.  Belongs to the rollup's thread, or in a cluster to a worker of it (workers.h).
 * Source: storage/rollup/README.md, "A pass"; model-checked in Promela (tests/model/rollup.pml).
 *
 * Each zone in use may have such a bucket, H.  A pass has these steps:
 *
 *     mark      closes H for writers: from here on, late events go to H too        (mark.lua)
 *     list      the sites and pages of H's parts; after the mark, so nothing is missed
 *     merge     chunk by chunk: sketches united, sums computed anew                (merge.lua)
 *     advance   closes H for readers                                               (advance.lua)
 *     list      again: late events may have made new keys meanwhile
 *     expire    the parts get their expiry; the last chunk ends the pass           (expire.lua)
 *
 * Every step compares the pass's random id and its cursor.  When a step fails, or the connection is
 * lost, the pass and its list are void.  Then `state` is read again, and the pass is taken over
 * under a new id with a new list (takeover.lua).  The id begins with the level's letter, so that
 * the process that takes over knows the level of H.
 */
#ifndef STORAGE_ROLLUP_PASS_H
#define STORAGE_ROLLUP_PASS_H

#include "storage/rollup/leadership.h"

/* Do the next pass that is due in @partition, or finish one that was left open.  @session is
 * connected to the partition's server. */
enum pass_result rollup_pass(struct core *core, struct session *session, unsigned partition,
    const struct leadership *leadership) MUST_CHECK;

/* When the next pass of a partition with @state is due, UTC seconds.  0: now. */
int64_t rollup_due_s(const struct site_zones *zones, const struct rollup_state *state);

#endif

/* pass.h - complete the buckets of a level that end at one instant, in one partition, from
 * their parts: one for each zone in use that has one.
 *
 * Layer: storage.  Belongs to the rollup thread.
 * Source: ARCHITECTURE.md, "Rolling up"; model-checked in Promela (tests/model/rollup.pml).
 *
 *     mark      closes H for writers: from here on, late events go to H too             (mark.lua)
 *     list      the sites and pages of H's parts; after the mark, so nothing is missed
 *     merge     chunk by chunk: sketches united, sums computed anew                     (merge.lua)
 *     advance   closes H for readers (advance.lua) list      again: new keys came meanwhile expire
 * the parts get their expiry; the last chunk ends the pass                (expire.lua)
 *
 * Every step compares the pass's random id and its cursor.  When one fails, or the connection is
 * lost, the pass and its list are void: `rolled` is read again, and the pass taken over under a new
 * id with a new list (takeover.lua). The id begins with the level's letter, so that who takes over
 * knows what H is.
 */
#ifndef STORAGE_ROLLUP_PASS_H
#define STORAGE_ROLLUP_PASS_H

#include "storage/core/core.h"
#include "storage/core/session.h"

#define PASS_GRACE_S 30 /* most late events are in by then */

enum pass_result {
    PASS_DONE,    /* one pass was brought to its end */
    PASS_NOTHING, /* nothing is due in this partition */
    PASS_VOID,    /* somebody else moved it; look again */
    PASS_LOST,    /* the connection is of no use any more */
    PASS_FENCED,  /* the partition has seen a greater fencing token */
    PASS_FAILED,  /* Redis refused a step: later */
};

/* Why this process may do passes: asked before every step, so that a long pass does not outlive its
 * lease. */
struct rollup_lease {
    int64_t fencing_token;
    int64_t grace_s; /* after an hour's end, before it is marked: PASS_GRACE_S; 0 when asked for */
    bool (*still_mine)(void *data);
    void (*fenced)(void *data, int64_t token); /* a partition has seen this token */
    void *data;
};

/* Do the next pass that is due in @partition, or finish one left open. */
enum pass_result rollup_pass(struct core *core, struct session *session, unsigned partition,
    const struct rollup_lease *lease);

/* When the next pass of a partition with @state is due, UTC seconds. */
int64_t rollup_due_s(const struct site_zones *zones, const struct rollup_state *state);

#endif

/* write_plan.h - which buckets an event goes to, given how far its partition is rolled up.
 *
 * Layer: storage, pure.  One owner (it remembers the last minute's answer).
 * ARCHITECTURE.md, "Writing exactly once": every event to its minute, and to each coarser bucket
 * closed for writers. A bucket whose parent is closed for readers gets its expiry; one whose parent
 * is not is announced to the rollup that will fill the parent.  The months' parent is the month
 * itself: they expire once closed.
 */
#ifndef STORAGE_TIME_WRITE_PLAN_H
#define STORAGE_TIME_WRITE_PLAN_H

#include "storage/time/closed.h"

struct write_target {
    struct bucket bucket;
    int64_t expire_ms; /* 0: no expiry yet */
    bool announce;     /* put (site, parent) into the open set */
    struct bucket parent;
};

struct write_plan {
    const struct zone *zone;
    const struct retention *retention;
    struct rollup_state state;
    int64_t minute_s; /* of the targets below; INT64_MIN: none */
    struct write_target targets[LEVELS];
    unsigned n;
};

/* @retention is kept as a pointer and must outlive the plan; @state is copied. */
void write_plan_init(struct write_plan *plan, const struct zone *zone,
    const struct retention *retention, const struct rollup_state *state);

/* From here on the events are of sites in @zone. */
void write_plan_in(struct write_plan *plan, const struct zone *zone);

/* The targets of an event at @at_s, plan->targets[0 .. plan->n), minute first; more than one: it is
 * late. */
void write_plan_at(struct write_plan *plan, int64_t at_s);

/* When a bucket that ended at @end_s and is kept @keep_s expires, in ms; 0 for never. */
int64_t expiry_ms(int64_t end_s, int64_t keep_s);

#endif

/* write_plan.h - into which buckets an event is written.
 *
 * Layer: storage, pure.  Not thread-safe: a plan has one owner, and remembers its last answer.
 *
 * An event is written into the bucket of its minute.  A rollup fills coarser buckets later, so most
 * events are written into no other bucket.  An event that is late comes when coarser buckets are
 * complete already, and must be added to those too.  The rules (storage/log/PROTOCOL.md, "Fold";
 * "closed" is explained in closed.h):
 *
 *     bucket                                      is written
 *     the event's minute                          always
 *     its hour, its day, its month                if the bucket is closed for writers
 *
 *     a bucket that is written                    gets
 *     its parent is closed for readers            its expiry: nothing is made from it any more
 *     its parent is not closed for readers        an announcement to the rollup, which will fill
 *                                                 the parent from it
 *
 * The parent is the bucket of the next coarser level.  A month is its own parent: it expires once
 * it is closed.
 */
#ifndef STORAGE_TIME_WRITE_PLAN_H
#define STORAGE_TIME_WRITE_PLAN_H

#include "storage/time/closed.h"

struct write_target {
    struct bucket bucket;
    int64_t expire_ms; /* UTC milliseconds; 0: no expiry yet, or never */
    bool announce;     /* put (site, parent) into the set of what a rollup has still to visit */
    struct bucket parent;
};

struct write_plan {
    const struct zone *zone;
    const struct retention *retention;
    struct rollup_state state;
    int64_t minute_s; /* the minute that the targets are for; INT64_MIN: none */
    struct write_target targets[LEVELS];
    unsigned n;
};

/* Make a plan for the events of a partition, at first of sites in UTC.  @retention must outlive the
 * plan; @state is copied. */
void write_plan_init(
    struct write_plan *plan, const struct retention *retention, const struct rollup_state *state);

/* Plan from now on for events of sites in @zone, which must outlive the plan. */
void write_plan_in(struct write_plan *plan, const struct zone *zone);

/* Find the targets of an event at @at_s: plan->targets[0 .. plan->n), the minute first.  More than
 * one target means that the event is late. */
void write_plan_at(struct write_plan *plan, int64_t at_s);

/* When a bucket that ended at @end_s and is kept for @keep_s expires: UTC milliseconds, 0 for
 * never. */
int64_t expiry_ms(int64_t end_s, int64_t keep_s);

#endif

/* plan.h - which buckets of which partitions answer a question, for its window or for each
 * point of a series; and where none can, what could be asked for instead.
 *
 * Layer: storage, private to count.c.  Belongs to a reader thread.
 */
#ifndef STORAGE_COUNT_PLAN_H
#define STORAGE_COUNT_PLAN_H

#include "storage/count/question.h"

/* The metrics that are asked for: a set, see count/question.h. */
unsigned count_metrics(const struct count_job *job);

/* Which partition is asked for which pages: a page's own one; for visits, which lie with the
 * visitors, all.  False: no memory. */
bool count_make_shards(struct counter *c, const struct count_job *job);

/* Plan for *@window, or with round_outer for what is answerable around it, which *@window becomes.
 * STORAGE_NOT_KEPT, _TOO_FINE, _TOO_MANY and _TOO_BROAD: job says what would work (storage.h). */
enum storage_err count_plan(
    struct counter *c, struct count_job *job, int64_t now_s, struct window *window);

#endif

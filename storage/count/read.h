/* read.h - ask Redis for what a plan needs, and take it only if the plan still holds.
 *
 * Layer: storage, private to count.c.  Belongs to a reader thread.
 */
#ifndef STORAGE_COUNT_READ_H
#define STORAGE_COUNT_READ_H

#include "storage/core/session.h"
#include "storage/count/question.h"

/* Read the covers of all shards into c->tally, and Redis's clock into c->latest_s.
 * c->stale: a rollup moved on, plan again from the views that were learnt.  *ret_lost: see
 * counter_run. */
enum storage_err counter_read(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost);

#endif

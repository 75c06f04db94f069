/* state.h - learns, makes and deletes a named filter in Redis.
 *
 * Layer: storage, private to filter/.  Belongs to a reader's thread, for one job.
 */
#ifndef STORAGE_FILTER_STATE_H
#define STORAGE_FILTER_STATE_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/filter/shape.h"
#include "storage/read/pipeline.h"

#define FILTER_KEY "a filter's key" /* for pipeline_foreign */

struct filter_state {
    struct core *core;
    struct pipeline pipe;
    const struct filter_job *asked;
    struct filter_shape shape;
    struct filter_shard shards[FILTER_SHARDS_MAX];
};

/* Functions that return a bool return false after a fault: see state->pipe.err. */

/* Learn the filter's shape and shards.  A filter that is half deleted is deleted first.
 * state->shape.id is 0 if there is none.  Fails if a partition of the filter has lost its state. */
bool filter_learn(struct filter_state *state) MUST_CHECK;

/* Make the filter as it was asked for, unless there is one: *ret_made tells.  Does not learn it. */
bool filter_make(struct filter_state *state, bool *ret_made) MUST_CHECK;

/* Delete the filter that was learnt.  From the first step on no process sees the filter.  A process
 * that dies half way leaves the rest to the next one that asks for the filter. */
bool filter_drop(struct filter_state *state) MUST_CHECK;

/* A shard's partition, and the partition's hash tag. */
unsigned filter_place(const struct filter_state *state, unsigned shard);
const char *filter_tag(const struct filter_state *state, unsigned shard);

#endif

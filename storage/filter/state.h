/* state.h - a named filter as Redis has it now: learn it, make it, delete it.
 *
 * Layer: storage, private to filter*.c.  Belongs to a reader thread.
 */
#ifndef STORAGE_FILTER_STATE_H
#define STORAGE_FILTER_STATE_H

#include "storage/filter/shape.h"
#include "storage/core/core.h"
#include "storage/read/pipeline.h"

#define FILTER_KEY "a filter's key" /* for pipeline_foreign */

struct filter_state {
    const struct core *core;
    struct pipeline pipe;
    const struct filter_job *asked;
    struct filter_shape shape;
    struct filter_shard shards[PARTITIONS_MAX];
};

/* Learn the filter's shape and shards; one that is half deleted is deleted first.
 * state->shape.id 0: there is none.  False: see state->pipe.err. */
bool filter_learn(struct filter_state *state);

/* Make it as it was asked for, unless it is there; *ret_made.  Does not learn it. */
bool filter_make(struct filter_state *state, bool *ret_made);

/* Delete it, as it was learnt.  Nobody sees it from the first step on; a process that dies half way
 * leaves the rest to the next one that asks for the filter. */
bool filter_drop(struct filter_state *state);

/* The hash tag of a shard's partition. */
const char *filter_tag(const struct filter_state *state, unsigned shard);

#endif

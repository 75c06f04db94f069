/* filter.c - the jobs about named filters: to make, describe, check, fill and delete one. */
#include "storage/job/filter_job.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "storage/filter/items.h"
#include "storage/read/operation.h"

#define GONE_PAUSE_MS 5

static struct filter_figures figures(const struct filter_state *state)
{
    const struct filter_shape *shape = &state->shape;
    struct filter_figures f = {
        .created_capacity = shape->capacity, .expansion = shape->expansion, .error = shape->error};
    double capacity = 0;
    double set = 0;
    for (unsigned s = 0; s < shape->shards; s++) {
        const struct filter_shard *shard = &state->shards[s];
        unsigned n = shard->n == 0 ? 1 : shard->n; /* a shard without items has an empty layer */
        double wrong = 0;                          /* probability of a wrong answer */
        for (unsigned i = 0; i < n; i++) {
            struct bloom_layer layer = bloom_layer(&shape->shard, i);
            uint64_t bytes = layer.bits / 8 * layer.segments;
            f.items += shard->items[i];
            f.bytes += bytes;
            f.hashes = layer.hashes > f.hashes ? layer.hashes : f.hashes;
            set += bloom_fill(&layer, shard->items[i]) * (double)bytes;
            wrong = bloom_either(wrong, bloom_false_positives(&layer, shard->items[i]));
        }
        f.layers = n > f.layers ? n : f.layers;
        f.false_positives += wrong / shape->shards;
        capacity += filter_nominal_capacity(shape, n);
    }
    f.capacity = (uint64_t)llround(capacity);
    f.fill = set / (double)f.bytes;
    return f;
}

static bool same_parameters(const struct filter_shape *shape, const struct filter_job *asked)
{
    return shape->capacity == asked->capacity && shape->error == asked->error &&
           shape->expansion == asked->expansion;
}

/* Learn the filter; with @make the filter is made if there is none.  Another process may delete the
 * filter again and again, but not past the deadline: then the pipeline fails. */
static bool learn(struct filter_state *state, struct filter_job *job, bool make)
{
    for (;;) {
        if (!filter_learn(state)) {
            return false;
        }
        bool made = false;
        if (state->shape.id != 0 || !make) {
            return true;
        }
        if (!filter_make(state, &made)) {
            return false;
        }
        job->created = job->created || made;
    }
}

static void run_create(struct filter_state *state, struct filter_job *job)
{
    if (learn(state, job, true)) {
        job->outcome = same_parameters(&state->shape, job) ? FILTER_DONE : FILTER_DIFFERS;
        job->figures = figures(state);
    }
}

/* Carry out an action on a filter that there is, and makes none. */
static void run_existing(struct filter_state *state, struct filter_job *job)
{
    bool ok = learn(state, job, false) && state->shape.id != 0;
    if (ok && job->action == FILTER_INFO) {
        job->figures = figures(state);
    } else if (ok) {
        ok = job->action == FILTER_DROP ? filter_drop(state) : filter_check_items(state, job);
    }
    if (ok) {
        job->outcome = FILTER_DONE;
    }
}

static void run_add(struct filter_state *state, struct filter_job *job)
{
    bool gone = false;
    do {
        if (gone) { /* another process is deleting the filter */
            (void)poll(NULL, 0, GONE_PAUSE_MS);
        }
        gone = false;
        if (!learn(state, job, true) || !filter_add_items(state, job, &gone)) {
            return;
        }
    } while (gone);
    job->outcome = FILTER_DONE;
}

enum storage_err filter_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct filter_job *asked = &job->u.filter;
    struct filter_state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return STORAGE_NOMEM;
    }
    state->core = reader->core;
    pipeline_init(&state->pipe, &reader->session, job->deadline_ms);
    state->asked = asked;
    asked->outcome = FILTER_ABSENT;
    asked->created = false;
    if (asked->answers != NULL) {
        memset(asked->answers, FILTER_PENDING, asked->n_items);
    }
    switch (asked->action) {
    case FILTER_CREATE:
        run_create(state, asked);
        break;
    case FILTER_ADD:
        run_add(state, asked);
        break;
    case FILTER_INFO:
    case FILTER_DROP:
    case FILTER_CHECK:
        run_existing(state, asked);
        break;
    }
    enum storage_err err = pipeline_answer(&state->pipe, job, ret_lost);
    free(state);
    return err;
}

#include "storage/filter/state.h"
#include "storage/redis/resp.h"

#include <stdio.h>

#define UNLINK_BYTES (1 << 20) /* of the strings of one command */

const char *filter_tag(const struct filter_state *state, unsigned shard)
{
    const struct core *core = state->pipe.reader->core;
    return core->partitions.tag[filter_partition(&state->shape, shard)];
}

/* ---- learning ---- */

static void ask_shard(struct filter_state *state, unsigned shard)
{
    struct key key;
    struct pipeline *p = &state->pipe;
    key_filter_shard(&key, filter_tag(state, shard), state->shape.site, state->shape.name);
    resp_head(&p->out, 2);
    resp_text(&p->out, "HGETALL");
    resp_word(&p->out, key.p, key.n);
    p->n++;
}

static bool take_shard(struct filter_state *state, unsigned shard)
{
    const struct reply *pairs = pipeline_take(&state->pipe);
    if (pairs == NULL) {
        return false;
    }
    return filter_shard_read(&state->shape, pairs, &state->shards[shard]) ||
           pipeline_foreign(&state->pipe);
}

/* Most filters have one shard, beside the filter's own hash. */
static bool look(struct filter_state *state)
{
    struct pipeline *p = &state->pipe;
    struct key key;
    key_filter(&key, filter_tag(state, 0), state->shape.site, state->shape.name);
    resp_head(&p->out, 2 + FILTER_HOME_FIELDS);
    resp_text(&p->out, "HMGET");
    resp_word(&p->out, key.p, key.n);
    for (size_t i = 0; i < FILTER_HOME_FIELDS; i++) {
        resp_text(&p->out, filter_home_fields[i]);
    }
    p->n++;
    ask_shard(state, 0);
    if (!pipeline_send(p, false)) {
        return false;
    }
    const struct reply *fields = pipeline_take(p);
    if (fields == NULL) {
        return false;
    }
    if (!filter_shape_read(&state->shape, fields)) {
        return pipeline_foreign(p);
    }
    if (!take_shard(state, 0)) {
        return false;
    }
    for (unsigned s = 1; state->shape.id != 0 && s < state->shape.shards; s++) {
        ask_shard(state, s);
    }
    if (!pipeline_send(p, false)) {
        return false;
    }
    for (unsigned s = 1; state->shape.id != 0 && s < state->shape.shards; s++) {
        if (!take_shard(state, s)) {
            return false;
        }
    }
    return true;
}

bool filter_learn(struct filter_state *state)
{
    const struct filter_job *asked = state->asked;
    filter_shape_init(
        &state->shape, asked->site, asked->name, &state->pipe.reader->core->partitions);
    if (!look(state)) {
        return false;
    }
    if (state->shape.id != 0 && state->shape.dropping) {
        if (!filter_drop(state)) {
            return false;
        }
        state->shape.id = 0;
    }
    return true;
}

/* ---- making ---- */

bool filter_make(struct filter_state *state, bool *ret_made)
{
    struct pipeline *p = &state->pipe;
    const struct filter_job *asked = state->asked;
    struct filter_layout layout = filter_layout(
        asked->capacity, asked->error, asked->expansion, &p->reader->core->partitions);
    char error[32];
    int n = snprintf(error, sizeof(error), "%.17g", asked->error);
    struct key key;
    key_filter(&key, filter_tag(state, 0), state->shape.site, state->shape.name);
    script_head(&p->out, &p->reader->session.scripts, SCRIPT_FILTER_CREATE, 1, 5);
    resp_word(&p->out, key.p, key.n);
    resp_decimal(&p->out, (int64_t)asked->capacity);
    resp_word(&p->out, error, (size_t)n);
    resp_decimal(&p->out, asked->expansion);
    resp_decimal(&p->out, layout.shards);
    resp_decimal(&p->out, layout.rules);
    p->n++;
    if (!pipeline_send(p, true)) {
        return false;
    }
    const struct reply *made = pipeline_take(p);
    if (made == NULL) {
        return false;
    }
    *ret_made = reply_integer(made, 0) == 1;
    return true;
}

/* ---- deleting ---- */

static void ask_drop(struct filter_state *state, const struct key *key, const char *phase)
{
    struct pipeline *p = &state->pipe;
    script_head(&p->out, &p->reader->session.scripts, SCRIPT_FILTER_DROP, 1, 2);
    resp_word(&p->out, key->p, key->n);
    resp_decimal(&p->out, (int64_t)state->shape.id);
    resp_text(&p->out, phase);
    p->n++;
}

/* One phase for every shard; *ret_layers (one a shard, unless NULL) is what is to be deleted. */
static bool drop_shards(struct filter_state *state, const char *phase, unsigned *ret_layers)
{
    for (unsigned s = 0; s < state->shape.shards; s++) {
        struct key key;
        key_filter_shard(&key, filter_tag(state, s), state->shape.site, state->shape.name);
        ask_drop(state, &key, phase);
    }
    if (!pipeline_send(&state->pipe, true)) {
        return false;
    }
    for (unsigned s = 0; s < state->shape.shards; s++) {
        const struct reply *layers = pipeline_take(&state->pipe);
        if (layers == NULL) {
            return false;
        }
        int64_t n = reply_integer(layers, 0);
        if (ret_layers != NULL) {
            ret_layers[s] = n < 0 ? 0 : n > BLOOM_LAYERS_MAX ? BLOOM_LAYERS_MAX : (unsigned)n;
        }
    }
    return true;
}

/* The same for the filter's own hash. */
static bool drop_home(struct filter_state *state, const char *phase)
{
    struct key key;
    key_filter(&key, filter_tag(state, 0), state->shape.site, state->shape.name);
    ask_drop(state, &key, phase);
    return pipeline_send(&state->pipe, true) && pipeline_take(&state->pipe) != NULL;
}

/* A few strings a command: Redis frees a string at once (what lazyfree leaves to a thread has many
 * parts), and must not be held. */
static bool unlink_layer(struct filter_state *state, unsigned shard, unsigned index)
{
    struct pipeline *p = &state->pipe;
    struct bloom_layer layer = bloom_layer(&state->shape.shard, index);
    uint64_t at_once = 1 + UNLINK_BYTES / (layer.bits / 8 + 1);
    size_t commands = 0;
    for (uint64_t first = 0; first < layer.segments; first += at_once) {
        uint64_t left = layer.segments - first;
        uint64_t n = left < at_once ? left : at_once;
        resp_head(&p->out, 1 + n);
        resp_text(&p->out, "UNLINK");
        for (uint64_t i = 0; i < n; i++) {
            struct key key;
            key_filter_bits(&key, filter_tag(state, shard), state->shape.site, state->shape.name,
                state->shape.id, index, first + i);
            resp_word(&p->out, key.p, key.n);
        }
        p->n++;
        commands++;
    }
    if (!pipeline_send(p, true)) {
        return false;
    }
    for (; commands > 0; commands--) {
        if (pipeline_take(p) == NULL) {
            return false;
        }
    }
    return true;
}

bool filter_drop(struct filter_state *state)
{
    unsigned layers[PARTITIONS_MAX] = {0};
    if (!drop_home(state, "fence") || !drop_shards(state, "fence", layers)) {
        return false;
    }
    for (unsigned s = 0; s < state->shape.shards; s++) {
        for (unsigned i = 0; i < layers[s]; i++) {
            if (!unlink_layer(state, s, i)) {
                return false;
            }
        }
    }
    return drop_shards(state, "over", NULL) && drop_home(state, "over");
}

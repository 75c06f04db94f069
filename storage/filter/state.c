#include "storage/filter/state.h"
#include "storage/read/kept_state.h"
#include "storage/redis/resp.h"

#include <stdio.h>

#define UNLINK_BYTES (1 << 20) /* the strings that one command deletes have so many bytes */

unsigned filter_place(const struct filter_state *state, unsigned shard)
{
    return filter_partition(&state->shape, shard);
}

const char *filter_tag(const struct filter_state *state, unsigned shard)
{
    return state->core->partitions.tag[filter_place(state, shard)];
}

/* ---- learning ---- */

/* Ask for shards [@from, @to), and for the states of their partitions. */
static void ask_shards(struct filter_state *state, unsigned from, unsigned to)
{
    for (unsigned s = from; s < to; s++) {
        struct key key;
        struct buffer *out = pipeline_command(&state->pipe, filter_place(state, s), "HGETALL", 1);
        resp_slice(out,
            key_filter_shard(&key, filter_tag(state, s), state->shape.site, state->shape.name));
        kept_state_ask(state->core, &state->pipe, filter_place(state, s));
    }
}

static bool take_shards(struct filter_state *state, unsigned from, unsigned to)
{
    for (unsigned s = from; s < to; s++) {
        const struct reply *pairs = pipeline_take(&state->pipe);
        if (pairs == NULL) {
            return false;
        }
        if (!filter_shard_read(&state->shape, pairs, &state->shards[s])) {
            return pipeline_foreign(&state->pipe, FILTER_KEY);
        }
        if (!kept_state_take(state->core, &state->pipe, filter_place(state, s))) {
            return false;
        }
    }
    return true;
}

/* Read the filter's hash and its first shard, then the other shards, which most filters lack. */
static bool look(struct filter_state *state)
{
    struct pipeline *p = &state->pipe;
    struct key key;
    struct buffer *out =
        pipeline_command(p, filter_place(state, 0), "HMGET", 1 + FILTER_HOME_FIELDS);
    resp_slice(out, key_filter(&key, filter_tag(state, 0), state->shape.site, state->shape.name));
    for (size_t i = 0; i < FILTER_HOME_FIELDS; i++) {
        resp_text(out, filter_home_fields[i]);
    }
    ask_shards(state, 0, 1);
    const struct reply *fields = pipeline_ask(p, false);
    if (fields == NULL) {
        return false;
    }
    if (!filter_shape_read(&state->shape, fields)) {
        return pipeline_foreign(p, FILTER_KEY);
    }
    if (!take_shards(state, 0, 1)) {
        return false;
    }
    unsigned n = state->shape.id != 0 ? state->shape.shards : 1;
    ask_shards(state, 1, n);
    return pipeline_send(p, false) && take_shards(state, 1, n);
}

bool filter_learn(struct filter_state *state)
{
    const struct filter_job *asked = state->asked;
    filter_shape_init(&state->shape, asked->site, asked->name, &state->core->partitions);
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
    const struct filter_job *asked = state->asked;
    struct filter_layout layout =
        filter_layout(asked->capacity, asked->error, asked->expansion, &state->core->partitions);
    char error[32];
    int n = snprintf(error, sizeof(error), "%.17g", asked->error);
    struct key key;
    struct buffer *out =
        pipeline_script(&state->pipe, filter_place(state, 0), SCRIPT_FILTER_CREATE, 1, 5);
    resp_slice(out, key_filter(&key, filter_tag(state, 0), state->shape.site, state->shape.name));
    resp_decimal(out, (int64_t)asked->capacity);
    resp_word(out, error, (size_t)n);
    resp_decimal(out, asked->expansion);
    resp_decimal(out, layout.shards);
    resp_decimal(out, layout.rules);
    const struct reply *made = pipeline_ask(&state->pipe, true);
    if (made == NULL) {
        return false;
    }
    *ret_made = reply_integer(made, 0) == 1;
    return true;
}

/* ---- deleting ---- */

static void ask_drop(
    struct filter_state *state, unsigned shard, const struct key *key, const char *phase)
{
    struct buffer *out =
        pipeline_script(&state->pipe, filter_place(state, shard), SCRIPT_FILTER_DROP, 1, 2);
    resp_word(out, key->p, key->n);
    resp_decimal(out, (int64_t)state->shape.id);
    resp_text(out, phase);
}

/* Do one phase for every shard.  *ret_layers, unless NULL: how many layers each shard has. */
static bool drop_shards(struct filter_state *state, const char *phase, unsigned *ret_layers)
{
    for (unsigned s = 0; s < state->shape.shards; s++) {
        struct key key;
        key_filter_shard(&key, filter_tag(state, s), state->shape.site, state->shape.name);
        ask_drop(state, s, &key, phase);
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
    ask_drop(state, 0, &key, phase);
    return pipeline_ask(&state->pipe, true) != NULL;
}

/* A few strings a command: Redis frees a string itself (its lazyfree thread gets only values of
 * many parts), and must not be held for long. */
static bool unlink_layer(struct filter_state *state, unsigned shard, unsigned index)
{
    struct pipeline *p = &state->pipe;
    struct bloom_layer layer = bloom_layer(&state->shape.shard, index);
    uint64_t at_once = 1 + UNLINK_BYTES / (layer.bits / 8 + 1);
    size_t commands = 0;
    for (uint64_t first = 0; first < layer.segments; first += at_once) {
        uint64_t left = layer.segments - first;
        uint64_t n = left < at_once ? left : at_once;
        struct buffer *out = pipeline_command(p, filter_place(state, shard), "UNLINK", n);
        for (uint64_t i = 0; i < n; i++) {
            struct key key;
            resp_slice(out, key_filter_bits(&key, filter_tag(state, shard), state->shape.site,
                                state->shape.name, state->shape.id, index, first + i));
        }
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
    unsigned layers[FILTER_SHARDS_MAX] = {0};
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

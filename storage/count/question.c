#include "storage/count/question.h"

#include <stdlib.h>

const struct slice counter_whole_site = {"", 0};

enum key_kind metric_kind(enum metric metric)
{
    switch (metric) {
    case METRIC_PV:
        return KEY_PV;
    case METRIC_UV:
        return KEY_UV;
    case METRIC_IPS:
        return KEY_IP;
    case METRIC_VISITS:
        return KEY_VV;
    }
    return KEY_PV;
}

size_t counter_keys(const struct shard *shard, unsigned metrics, enum metric metric)
{
    if ((metrics >> metric & 1) == 0) {
        return 0;
    }
    return metric_is_sketch(metric) ? shard->n_pages : 1;
}

size_t counter_reads(const struct shard *shard, unsigned metrics, size_t n)
{
    return n * shard->n_pages * (size_t)__builtin_popcount(metrics);
}

void counter_drop_rest(struct counter *c)
{
    for (size_t i = 0; i < c->n_rest; i++) {
        free(c->rest[i].runs); /* the pages are the shard's own */
        cover_release(&c->rest[i].cover);
    }
    c->n_rest = 0;
}

void counter_drop_shards(struct counter *c)
{
    counter_drop_rest(c);
    for (size_t i = 0; i < c->n_shards; i++) {
        free(c->shards[i].pages);
        free(c->shards[i].runs);
        free(c->shards[i].ends);
        cover_release(&c->shards[i].cover);
    }
    c->n_shards = 0;
}

struct counter *counter_new(struct core *core)
{
    struct counter *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->core = core;
        c->zone = zone_utc();
    }
    return c;
}

void counter_free(struct counter *c)
{
    if (c != NULL) {
        counter_drop_shards(c);
        tally_release(&c->tally);
        free(c->shards);
        free(c->rest);
        free(c->known);
        free(c->chunks);
        buffer_release(&c->out);
        free(c);
    }
}

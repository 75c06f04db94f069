#include "storage/filter/shape.h"

#include <math.h>
#include <stdlib.h>

/* A shard's share of the items is off by its square root (one standard deviation). */
#define SHARD_SPARE      0.02
#define SHARD_DEVIATIONS 6.0

const char *const filter_home_fields[FILTER_HOME_FIELDS] = {
    "id", "capacity", "error", "expansion", "shards", "drop", "rules"};

/* What each number in the field `rules` stands for. */
static const struct {
    enum bloom_rules rules;
    uint64_t segment_bits; /* 0: not one of ours */
} rules_of[] = {
    [FILTER_REDISBLOOM] = {BLOOM_REDISBLOOM, BLOOM_SEGMENT_BITS},
    [FILTER_OWN_LONG] = {BLOOM_OWN, UINT64_C(1) << 23},
    [FILTER_OWN] = {BLOOM_OWN, BLOOM_STRING_BITS(256 << 10)},
};

static struct bloom_params params_of(
    enum filter_rules rules, uint64_t capacity, double error, unsigned expansion)
{
    return (struct bloom_params){.rules = rules_of[rules].rules,
        .capacity = capacity,
        .error = error,
        .expansion = expansion,
        .segment_bits = rules_of[rules].segment_bits};
}

static unsigned shards_most(unsigned partitions)
{
    return partitions < FILTER_SHARDS_MAX ? partitions : FILTER_SHARDS_MAX;
}

struct filter_layout filter_layout(
    uint64_t capacity, double error, unsigned expansion, const struct partitions *partitions)
{
    struct bloom_params params = params_of(FILTER_REDISBLOOM, capacity, error, expansion);
    if (bloom_layer(&params, 0).segments == 1) {
        return (struct filter_layout){1, FILTER_REDISBLOOM};
    }
    return (struct filter_layout){shards_most(partitions->n), FILTER_OWN};
}

void filter_shape_init(struct filter_shape *shape, struct slice site, struct slice name,
    const struct partitions *partitions)
{
    *shape = (struct filter_shape){.site = site,
        .name = name,
        .shards = 1, /* until the number is read */
        .home = partition_of(partitions, page_hash(site, name)),
        .partitions = partitions->n};
}

static bool read_number(const struct reply *text, uint64_t max, uint64_t *ret)
{
    int64_t value = reply_integer(text, -1);
    if (value < 0 || (uint64_t)value > max) {
        return false;
    }
    *ret = (uint64_t)value;
    return true;
}

bool filter_shape_read(struct filter_shape *shape, const struct reply *fields)
{
    uint64_t capacity;
    uint64_t expansion;
    uint64_t shards;
    uint64_t rules = FILTER_REDISBLOOM; /* of a filter whose hash names no rules */
    shape->id = 0;
    if (fields->type != REPLY_ARRAY || fields->n != FILTER_HOME_FIELDS) {
        return false;
    }
    if (fields->items[0].type == REPLY_NIL) {
        return true;
    }
    if (!read_number(&fields->items[0], INT64_MAX, &shape->id) || shape->id == 0 ||
        !read_number(&fields->items[1], BLOOM_CAPACITY_MAX, &capacity) || capacity == 0 ||
        fields->items[2].type != REPLY_TEXT ||
        !read_number(&fields->items[3], BLOOM_EXPANSION, &expansion) ||
        !read_number(&fields->items[4], shards_most(shape->partitions), &shards) || shards == 0 ||
        (fields->items[6].type != REPLY_NIL &&
            !read_number(&fields->items[6], FILTER_OWN, &rules)) ||
        rules_of[rules].segment_bits == 0) {
        return false;
    }
    shape->capacity = capacity;
    shape->error = strtod(fields->items[2].text.p, NULL); /* NUL-terminated: see redis.h */
    shape->expansion = (unsigned)expansion;
    shape->shards = (unsigned)shards;
    shape->dropping = fields->items[5].type != REPLY_NIL;
    shape->shard = params_of((enum filter_rules)rules, capacity, shape->error, shape->expansion);
    if (shards > 1) {
        double share = filter_nominal_capacity(shape, 1);
        double spare = shape->shard.rules == BLOOM_OWN ? SHARD_DEVIATIONS / sqrt(share) : 0;
        shape->shard.capacity = (uint64_t)ceil(share * (1 + fmax(spare, SHARD_SPARE)));
    }
    return shape->error >= BLOOM_ERROR_MIN && shape->error <= BLOOM_ERROR_MAX;
}

bool filter_shard_read(
    const struct filter_shape *shape, const struct reply *pairs, struct filter_shard *ret)
{
    struct filter_shard shard = {0};
    uint64_t id = 0;
    uint64_t n = 0;
    if (pairs->type != REPLY_ARRAY || pairs->n % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < pairs->n; i += 2) {
        struct slice name = pairs->items[i].text;
        const struct reply *value = &pairs->items[i + 1];
        uint64_t layer = 0;
        if (slice_equal(name, SLICE("id"))) {
            (void)read_number(value, INT64_MAX, &id);
        } else if (slice_equal(name, SLICE("n"))) {
            (void)read_number(value, BLOOM_LAYERS_MAX, &n);
        } else if (read_number(&pairs->items[i], BLOOM_LAYERS_MAX - 1, &layer)) {
            (void)read_number(value, INT64_MAX, &shard.items[layer]);
        }
    }
    if (id != shape->id) {
        shard = (struct filter_shard){0}; /* the hash is left of an earlier filter */
    } else {
        shard.n = (unsigned)n;
    }
    *ret = shard;
    return true;
}

unsigned filter_shard_of(const struct filter_shape *shape, struct bloom_hash hash)
{
    return (unsigned)((hash.a >> 48) % shape->shards);
}

unsigned filter_partition(const struct filter_shape *shape, unsigned shard)
{
    return (shape->home + shard * (shape->partitions / shape->shards)) % shape->partitions;
}

double filter_nominal_capacity(const struct filter_shape *shape, unsigned layers)
{
    double capacity = 0;
    double layer = (double)shape->capacity / shape->shards;
    for (unsigned i = 0; i < layers; i++) {
        capacity += layer;
        layer = fmin(layer * shape->expansion, (double)BLOOM_CAPACITY_MAX);
    }
    return capacity;
}

#include "storage/seen/filter.h"

#include <stdlib.h>
#include <string.h>

#define LONG_SEGMENT_BITS (UINT64_C(1) << 22)

static bool read_pair(struct seen_filter *f, struct slice name, const struct reply *value)
{
    int64_t number = reply_integer(value, -1);
    if (value->type != REPLY_TEXT) {
        return false;
    }
    if (slice_equal(name, SLICE("ver"))) {
        if (value->text.n > SEEN_VER_TEXT) {
            return false;
        }
        f->ver.n = (uint8_t)value->text.n;
        memcpy(f->ver.text, value->text.p, value->text.n);
        return true;
    }
    if (slice_equal(name, SLICE("error"))) {
        f->params.error = strtod(value->text.p, NULL); /* NUL-terminated: see redis.h */
        return f->params.error > 0 && f->params.error <= BLOOM_ERROR_MAX;
    }
    if (slice_equal(name, SLICE("capacity"))) {
        f->params.capacity = (uint64_t)number;
        return number > 0 && f->params.capacity <= BLOOM_CAPACITY_MAX;
    }
    if (slice_equal(name, SLICE("rules"))) {
        f->rules = (enum seen_rules)number;
        return number >= SEEN_REDISBLOOM_LONG && number <= SEEN_OWN;
    }
    if (slice_equal(name, SLICE("n"))) {
        f->n = (unsigned)number;
        return number >= 0 && number <= BLOOM_LAYERS_MAX;
    }
    char *end;
    unsigned long layer = strtoul(name.p, &end, 10);
    if (*end != '\0' || layer >= BLOOM_LAYERS_MAX || number < 0) {
        return false;
    }
    f->items[layer] = (uint64_t)number;
    return true;
}

bool seen_filter_read(
    const struct reply *pairs, const struct bloom_params *params, struct seen_filter *ret)
{
    struct seen_filter f = {.params = *params, .rules = SEEN_OWN};
    if (pairs->type != REPLY_ARRAY || pairs->n % 2 != 0) {
        return false;
    }
    if (pairs->n > 0) {
        f.rules = SEEN_REDISBLOOM_LONG; /* of a filter whose hash names no rules */
    }
    for (size_t i = 0; i < pairs->n; i += 2) {
        if (!read_pair(&f, pairs->items[i].text, &pairs->items[i + 1])) {
            return false;
        }
    }
    f.params.rules = f.rules == SEEN_REDISBLOOM_LONG ? BLOOM_REDISBLOOM : BLOOM_OWN;
    f.params.segment_bits = f.rules == SEEN_OWN ? SEEN_SEGMENT_BITS : LONG_SEGMENT_BITS;
    *ret = f;
    return true;
}

double seen_filter_false_positives(const struct seen_filter *f)
{
    double any = 0;
    for (unsigned i = 0; i < f->n; i++) {
        struct bloom_layer layer = bloom_layer(&f->params, i);
        any = bloom_either(any, bloom_false_positives(&layer, f->items[i]));
    }
    return any;
}

/* filter.h - a month's filter as its hash tells it.
 *
 * Layer: storage, pure.
 */
#ifndef STORAGE_SEEN_FILTER_H
#define STORAGE_SEEN_FILTER_H

#include "storage/redis/redis.h"
#include "storage/seen/layout.h"

#define SEEN_VER_TEXT 32 /* hex digits */

struct seen_filter {
    char ver[SEEN_VER_TEXT + 1]; /* "": there is none yet */
    enum seen_rules rules;
    struct bloom_params params;
    unsigned n;
    uint64_t items[BLOOM_LAYERS_MAX];
};

/* Take the reply to HGETALL; a hash that is not there gives an empty filter with @params.
 * False: not one of ours. */
bool seen_filter_read(
    const struct reply *pairs, const struct bloom_params *params, struct seen_filter *ret);

/* The rate at which it says yes to what is not in it. */
double seen_filter_false_positives(const struct seen_filter *filter);

#endif

/* filter.h - the Bloom filter of one month, as its hash in Redis describes it.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_SEEN_FILTER_H
#define STORAGE_SEEN_FILTER_H

#include "storage/base/compiler.h"
#include "storage/redis/redis.h"
#include "storage/schema/partition_state.h"
#include "storage/seen/layout.h"

#define SEEN_VER_TEXT 32 /* hex digits */

struct seen_filter {
    struct ver ver; /* proves what is remembered of the filter (read/cache.h); n 0: it is empty */
    enum seen_rules rules;
    struct bloom_params params;
    unsigned n;                       /* number of layers */
    uint64_t items[BLOOM_LAYERS_MAX]; /* of each layer */
};

/* Take the reply to HGETALL.  A hash that is not there gives an empty filter with @params.
 * False, with *ret untouched: the hash is not one of ours. */
bool seen_filter_read(const struct reply *pairs, const struct bloom_params *params,
    struct seen_filter *ret) MUST_CHECK;

/* The rate at which the filter says yes to what is not in it. */
double seen_filter_false_positives(const struct seen_filter *filter);

#endif

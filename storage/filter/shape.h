/* shape.h - how a named filter (a Bloom filter that clients add to) lies in Redis.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 *   t:{h}:bf:<site>:<name>    hash    id, capacity, error, expansion, shards, rules
 *   t:{p}:bfs:<site>:<name>   hash    id, n (layers), 0.. (items of each layer): one a shard
 *   t:{p}:bfl:<site>:<name>:<id>:<layer>.<segment>
 *                             string  the bits
 *
 * A filter that fits into 4 MiB is RedisBloom's, bit for bit: its string is RedisBloom's image of
 * the layer.  A larger filter is cut into shards, so it cannot be such an image.  Therefore it has
 * our own rules (bloom.h), in segments of up to 256 KiB.
 *
 * All bits of an item lie in one string, so they are one command.  A new string is zeroed at one
 * go, and Redis is held as long.  Measured: 0.1 ms for 256 KiB, 0.4 for 1 MiB, 1.6 for 4 MiB, and
 * longer where the machine has to find the memory.  filter/add.c sees to it that a script that
 * makes a string does little else.
 *
 * h is the partition of hash(site, name).  Shard s of S lies in partition (h + s * (P / S)) mod P.
 * So a filter of one shard has everything in one partition, and a filter of several shards is
 * spread evenly.
 * Every request reads the hashes of all shards, so there are no more than FILTER_SHARDS_MAX.
 *
 * `id` is the time of creation in microseconds, always later than that of an earlier filter of the
 * name.  The id stands in every hash and in the bits' keys.  So a process that still goes by an
 * earlier filter of the name neither adds to this one nor deletes it.
 *
 * `drop` in a hash: the filter is being deleted, and the next process that meets it finishes that
 * first.  `last` in a hash without an id: the id of a filter that was deleted; it stays for two
 * hours.
 */
#ifndef STORAGE_FILTER_SHAPE_H
#define STORAGE_FILTER_SHAPE_H

#include "storage/base/compiler.h"
#include "storage/redis/redis.h"
#include "storage/schema/key.h"
#include "storage/schema/partition.h"
#include "storage/sketch/bloom.h"

#define FILTER_SHARDS_MAX 64

/* The field `rules` of a filter's hash.  (3 was used before the first release.) */
enum filter_rules {
    FILTER_REDISBLOOM = 1,
    FILTER_OWN_LONG = 2, /* segments of up to 1 MiB; not made any more */
    FILTER_OWN = 4,
};

struct filter_shape {
    struct slice site, name;
    uint64_t id; /* 0: there is no such filter */
    bool dropping;
    uint64_t capacity;
    double error;
    unsigned expansion;
    unsigned shards, home, partitions;
    struct bloom_params shard; /* of each shard */
};

/* What a shard's hash says.  n, the number of layers, is 0 if nothing was added yet. */
struct filter_shard {
    unsigned n;
    uint64_t items[BLOOM_LAYERS_MAX];
};

/* How a new filter is laid out, by its parameters. */
struct filter_layout {
    unsigned shards;
    enum filter_rules rules;
};
struct filter_layout filter_layout(
    uint64_t capacity, double error, unsigned expansion, const struct partitions *partitions);

void filter_shape_init(struct filter_shape *shape, struct slice site, struct slice name,
    const struct partitions *partitions);

/* Take the reply to HMGET <home> id capacity error expansion shards drop rules.  False: the hash is
 * not one of ours. */
#define FILTER_HOME_FIELDS 7
extern const char *const filter_home_fields[FILTER_HOME_FIELDS];
bool filter_shape_read(struct filter_shape *shape, const struct reply *fields) MUST_CHECK;

/* Take the reply to HGETALL of a shard's hash.  False: the hash is not one of ours. */
bool filter_shard_read(const struct filter_shape *shape, const struct reply *pairs,
    struct filter_shard *ret) MUST_CHECK;

/* The shard of an item by its hash, and the partition that a shard lies in. */
unsigned filter_shard_of(const struct filter_shape *shape, struct bloom_hash hash);
unsigned filter_partition(const struct filter_shape *shape, unsigned shard);

/* What the first @layers layers of one shard contribute to the capacity that was asked for.  (The
 * shards of a large filter are made a little larger than that, because items fall into them by
 * chance.) */
double filter_nominal_capacity(const struct filter_shape *shape, unsigned layers);

#endif

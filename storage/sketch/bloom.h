/* bloom.h - Bloom filters as RedisBloom has them, and better ones: sizing, hashing, growing.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 * A filter is a list of layers.  The first has the capacity that was asked for; when it is full the
 * next one has `expansion` times its capacity and half of its error, and only the newest layer is
 * added to. An item is in the filter if all its bits are set in any one layer.
 *
 *   error of layer 0:  error / 2 of a filter that grows (the sum stays below error), else error
 *   bits an item:      -ln(error) / ln(2)^2
 *   bits:              capacity * bits an item, cut off, rounded up to a multiple of 64
 *   hashes:            ceil(ln(2) * bits an item)
 *   bit i of an item:  (a + i * b) modulo bits, in unsigned 64-bit arithmetic
 *   a:                 MurmurHash64A of the item with the seed 0xc6a4a7935bd1e995
 *   b:                 the same with the seed a
 *
 * With two hashes for all, two items' bits are the same more often than by chance: once in `bits`
 * or so.  A filter of RedisBloom's has about error + 2/bits false positives (bits of its first
 * layer), so no error much below 1/bits can be had, whatever the capacity.  Where nothing must be
 * RedisBloom's, the rules are our own: capacities, errors and growth are the same, but
 *
 *   bit i of an item:  a mixture of a + i * b, scaled to bits: each a hash of its own
 *   hashes:            k = ceil(-log2(error))
 *   bits:              capacity * k / (p + p^2/2 + .. + p^k/k),
 *                      where p = error^(1/k); rounded up to a multiple of 64, and 64
 *
 * which makes the rate at capacity at most the error that was asked for, whatever both are.  (That
 * not each filter has the same share of its bits set makes it greater by k^2/2 * 0.31/bits of it at
 * most; 64 bits more than are needed, smaller by 41 k/bits.)
 *
 * What RedisBloom has not, either: a layer that would be longer than a bound is cut into segments,
 * each a filter of its own for the items whose hash falls there, so that no string in Redis grows
 * without bound: a segment is a string, and has all bits of an item.
 *
 * Source of the rules: RedisBloom's documentation and its figures (BF.INFO); of the algorithms:
 * Bloom 1970; Kirsch, Mitzenmacher 2006 (two hashes make all); Dillinger, Manolios 2004 (what that
 * costs where bits are few); MurmurHash64A: A. Appleby, public domain; the mixture: D. Stafford's
 * variant 13 (as in SplitMix64).
 */
#ifndef STORAGE_SKETCH_BLOOM_H
#define STORAGE_SKETCH_BLOOM_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define BLOOM_CAPACITY_MAX (UINT64_C(1) << 30) /* of a layer */
#define BLOOM_ERROR_MAX    0.25
#define BLOOM_ERROR_MIN    1e-15 /* 64-bit hashes cannot keep less */
#define BLOOM_EXPANSION    2
#define BLOOM_LAYERS_MAX   32
#define BLOOM_HASHES_MAX   128                 /* more than any layer within these bounds has */
#define BLOOM_SEGMENT_BITS (UINT64_C(1) << 25) /* 4 MiB: up to here figures are RedisBloom's */

/* The longest string of Redis of @bytes, a power of 2, with what Redis needs beside it. (One byte
 * more, and its allocator would take a quarter more.) */
#define BLOOM_STRING_BITS(bytes) (8 * ((uint64_t)(bytes)-16))

enum bloom_rules {
    BLOOM_REDISBLOOM = 1, /* stored by these numbers */
    BLOOM_OWN = 2,
};

struct bloom_params {
    enum bloom_rules rules;
    uint64_t capacity;     /* of layer 0: 1..BLOOM_CAPACITY_MAX */
    double error;          /* BLOOM_ERROR_MIN..BLOOM_ERROR_MAX */
    unsigned expansion;    /* 0: does not grow */
    uint64_t segment_bits; /* longest segment, BLOOM_SEGMENT_BITS at most */
};

struct bloom_layer {
    enum bloom_rules rules;
    uint64_t capacity;
    double error;
    uint64_t bits;     /* of each segment; a multiple of 64 */
    uint64_t segments; /* at least 1 */
    unsigned hashes;
};

struct bloom_hash {
    uint64_t a, b;
};

uint64_t murmur_hash64a(const void *bytes, size_t n, uint64_t seed);

struct bloom_hash bloom_hash(struct slice item);

/* Layer @index, from 0.  A capacity that would pass BLOOM_CAPACITY_MAX is BLOOM_CAPACITY_MAX. */
struct bloom_layer bloom_layer(const struct bloom_params *params, unsigned index);

/* The segment of a layer that an item belongs to. */
static inline uint64_t bloom_segment(const struct bloom_layer *layer, struct bloom_hash hash)
{
    return layer->segments <= 1 ? 0 : (hash.b >> 32) % layer->segments;
}

/* Bit @i of an item, 0 <= i < layer->hashes: byte bit/8, mask 1 << bit%8. */
static inline uint64_t bloom_bit(
    const struct bloom_layer *layer, struct bloom_hash hash, unsigned i)
{
    uint64_t h = hash.a + i * hash.b;
    if (layer->rules != BLOOM_OWN) {
        return h % layer->bits;
    }
    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    h ^= h >> 31;
    return (h >> 32) * layer->bits >> 32; /* bits are less than 2^32 */
}

/* The same bit as Redis's SETBIT and BITFIELD count: the highest of a byte first.  With it a string
 * in Redis is RedisBloom's image of the layer. */
static inline uint64_t bloom_redis_bit(uint64_t bit)
{
    return (bit & ~UINT64_C(7)) | (7 - (bit & 7));
}

/* Share of a layer's bits that are set once @items items are in, and the rate at which it then says
 * yes to what is not in it: (1 - e^(-kn/m))^k; by our own rules, more exactly. */
double bloom_fill(const struct bloom_layer *layer, uint64_t items);
double bloom_false_positives(const struct bloom_layer *layer, uint64_t items);

#endif

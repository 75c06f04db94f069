/* bloom.h - Bloom filters: sizing, hashing, growing.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * A Bloom filter says of an item that it was added, or that it was not.  "Not" is certain; "added"
 * is wrong at a small rate, the filter's error.  This file computes how many bits a filter has,
 * which of them are an item's, and what the error comes to.  The bits themselves lie in Redis.
 *
 * A filter is a list of layers.  The first one has the capacity that was asked for.  When the
 * newest layer is full, a layer with `expansion` times its capacity and half its error follows.
 * Only the newest layer is added to.  An item is in the filter if all its bits are set in any one
 * layer.
 *
 * There are two sets of rules.  The first one makes the same bits as RedisBloom does:
 *
 *   error of layer 0:  error / 2 of a filter that grows (the sum stays below error), else error
 *   bits an item:      -ln(error) / ln(2)^2
 *   bits:              capacity * bits an item, cut off, rounded up to a multiple of 64
 *   hashes:            ceil(ln(2) * bits an item)
 *   bit i of an item:  (a + i * b) modulo bits, in unsigned 64-bit arithmetic
 *   a:                 MurmurHash64A of the item with the seed 0xc6a4a7935bd1e995
 *   b:                 the same with the seed a
 *
 * Two hashes make all bits of an item.  So the bits of two items are the same more often than by
 * chance, about once in `bits`.  A filter of RedisBloom's has about error + 2/bits false positives,
 * with the bits of its first layer.  So it cannot keep an error much below 1/bits.
 *
 * Our own rules hold where nothing must be RedisBloom's.  Capacities, errors and growth are the
 * same, but:
 *
 *   bit i of an item:  a mixture of a + i * b, scaled to bits: each a hash of its own
 *   hashes:            k = ceil(-log2(error))
 *   bits:              capacity * k / (p + p^2/2 + .. + p^k/k), where p = error^(1/k);
 *                      rounded up to a multiple of 64, and 64
 *
 * With them the rate at capacity is at most the error that was asked for.  The share of bits that
 * are set differs a little between filters, which raises the rate by at most a part k^2/2 *
 * 0.31/bits of it.  The 64 bits more than are needed lower the rate by a part 41 k/bits, which is
 * more.
 *
 * By both sets of rules a layer that would be longer than a bound is cut into segments.  RedisBloom
 * does not do that.  A segment is a filter of its own for the items whose hash falls there.  It is
 * one string in Redis and has all bits of an item, so no string grows without bound.
 *
 * Source of the rules: RedisBloom's documentation and its figures (BF.INFO).  Source of the
 * algorithms: Bloom 1970; Kirsch, Mitzenmacher 2006 (two hashes make all); Dillinger, Manolios 2004
 * (what that costs); MurmurHash64A: A. Appleby, public domain; the mixture:
 * D. Stafford's variant 13, as in SplitMix64.
 */
#ifndef STORAGE_SKETCH_BLOOM_H
#define STORAGE_SKETCH_BLOOM_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define BLOOM_CAPACITY_MAX (UINT64_C(1) << 30) /* items of a layer */
#define BLOOM_ERROR_MAX    0.25
#define BLOOM_ERROR_MIN    1e-15 /* 64-bit hashes cannot keep less */
#define BLOOM_EXPANSION    2
#define BLOOM_LAYERS_MAX   32
#define BLOOM_HASHES_MAX   128                 /* more than any layer within these bounds has */
#define BLOOM_SEGMENT_BITS (UINT64_C(1) << 25) /* 4 MiB: up to here figures are RedisBloom's */

/* The bits of the longest string that takes @bytes of Redis's memory, a power of 2, with what Redis
 * needs beside the string.  For one byte more the allocator would take a quarter more. */
#define BLOOM_STRING_BITS(bytes) (8 * ((uint64_t)(bytes)-16))

enum bloom_rules {
    BLOOM_REDISBLOOM = 1, /* these numbers are stored in Redis */
    BLOOM_OWN = 2,
};

/* What a filter was made with. */
struct bloom_params {
    enum bloom_rules rules;
    uint64_t capacity;     /* items of layer 0: 1..BLOOM_CAPACITY_MAX */
    double error;          /* BLOOM_ERROR_MIN..BLOOM_ERROR_MAX */
    unsigned expansion;    /* 0: the filter does not grow */
    uint64_t segment_bits; /* longest segment: BLOOM_SEGMENT_BITS at most */
};

struct bloom_layer {
    enum bloom_rules rules;
    uint64_t capacity;
    double error;
    uint64_t bits;     /* bits of each segment; a multiple of 64 */
    uint64_t segments; /* at least 1 */
    unsigned hashes;
};

/* What decides which bits are an item's. */
struct bloom_hash {
    uint64_t a, b;
};

uint64_t murmur_hash64a(const void *bytes, size_t n, uint64_t seed);

struct bloom_hash bloom_hash(struct slice item);

/* Layer @index of a filter, from 0.  No layer has a capacity above BLOOM_CAPACITY_MAX. */
struct bloom_layer bloom_layer(const struct bloom_params *params, unsigned index);

/* The segment of a layer that an item belongs to: 0 .. layer->segments - 1. */
static inline uint64_t bloom_segment(const struct bloom_layer *layer, struct bloom_hash hash)
{
    return layer->segments <= 1 ? 0 : (hash.b >> 32) % layer->segments;
}

/* Bit @i of an item in its segment, 0 <= i < layer->hashes: byte bit/8, mask 1 << bit%8. */
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

/* The same bit as SETBIT and BITFIELD of Redis count: the highest bit of a byte comes first.  With
 * this number a string in Redis is RedisBloom's image of the layer. */
static inline uint64_t bloom_redis_bit(uint64_t bit)
{
    return (bit & ~UINT64_C(7)) | (7 - (bit & 7));
}

/* The share of a layer's bits that are set, 0..1, once @items items are in. */
double bloom_fill(const struct bloom_layer *layer, uint64_t items);

/* The rate, 0..1, at which a layer with @items items says yes to an item that is not in it.  By
 * RedisBloom's rules this is (1 - e^(-kn/m))^k for k hashes, n items and m bits; by our own rules
 * it is more exact. */
double bloom_false_positives(const struct bloom_layer *layer, uint64_t items);

/* The rate at which at least one of two sets of layers says yes by chance, if one of them does so
 * at rate @a and the other at @b.  1 - (1 - a)(1 - b) would be 0 for rates below 1e-16. */
static inline double bloom_either(double a, double b)
{
    return a + b - a * b;
}

#endif

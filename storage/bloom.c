#include "storage/bloom.h"

#include <math.h>

#define LN2         0.693147180559945
#define LN2_SQUARED 0.480453013918201

/* Items fall into segments by chance: the fullest of some has about so much more than its share. */
#define SEGMENT_SPARE 0.01

uint64_t murmur_hash64a(const void *bytes, size_t n, uint64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *p = bytes;
    uint64_t h = seed ^ (n * m);
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t k;
        memcpy(&k, p, sizeof(k)); /* little-endian, as all we run on */
        k *= m;
        k ^= k >> 47;
        k *= m;
        h = (h ^ k) * m;
    }
    if (n > 0) {
        uint64_t tail = 0;
        while (n > 0) {
            n--;
            tail = tail << 8 | p[n];
        }
        h = (h ^ tail) * m;
    }
    h ^= h >> 47;
    h *= m;
    return h ^ h >> 47;
}

struct bloom_hash bloom_hash(struct slice item)
{
    struct bloom_hash hash;
    hash.a = murmur_hash64a(item.p, item.n, UINT64_C(0xc6a4a7935bd1e995));
    hash.b = murmur_hash64a(item.p, item.n, hash.a);
    return hash;
}

struct bloom_layer bloom_layer(const struct bloom_params *params, unsigned index)
{
    struct bloom_layer layer = {.capacity = params->capacity,
        .error = params->expansion == 0 ? params->error : params->error * 0.5,
        .segments = 1};
    for (unsigned i = 0; i < index; i++) {
        layer.error *= 0.5;
        layer.capacity *= params->expansion;
        if (layer.capacity > BLOOM_CAPACITY_MAX) {
            layer.capacity = BLOOM_CAPACITY_MAX;
        }
    }
    double bits_per_item = -log(layer.error) / LN2_SQUARED;
    double items = (double)layer.capacity;
    double bits = items * bits_per_item;
    if (bits > (double)params->segment_bits) {
        /* The spare must not make a segment longer than it may be. */
        layer.segments =
            (uint64_t)ceil(bits * (1 + SEGMENT_SPARE) / (double)(params->segment_bits - 64));
        items = ceil(items / (double)layer.segments) * (1 + SEGMENT_SPARE);
    }
    layer.bits = (uint64_t)(items * bits_per_item);
    layer.bits = layer.bits == 0 ? 64 : (layer.bits + 63) / 64 * 64;
    layer.hashes = (unsigned)ceil(LN2 * bits_per_item);
    return layer;
}

double bloom_fill(const struct bloom_layer *layer, uint64_t items)
{
    double bits = (double)layer->bits * (double)layer->segments;
    return -expm1(-(double)layer->hashes * (double)items / bits);
}

double bloom_false_positives(const struct bloom_layer *layer, uint64_t items)
{
    return pow(bloom_fill(layer, items), (double)layer->hashes);
}

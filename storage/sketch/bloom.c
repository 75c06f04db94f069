#include "storage/sketch/bloom.h"

#include <math.h>

#define LN2         0.693147180559945
#define LN2_SQUARED 0.480453013918201

/* Items fall into segments by chance.  The fullest one has about so much more than its share. */
#define SEGMENT_SPARE 0.01

uint64_t murmur_hash64a(const void *bytes, size_t n, uint64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *p = bytes;
    uint64_t h = seed ^ (n * m);
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t k;
        memcpy(&k, p, sizeof(k)); /* little-endian, as all machines that tallyd runs on */
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

/* Only new items are counted, and an item is new if one of its k bits is not set yet.  So a share p
 * of m bits is set after m/k * (p + p^2/2 + .. + p^k/k) new items.  Returns the sum in brackets for
 * p = @fill, k = @hashes; *ret_slope is its derivative. */
static double load_of_fill(double fill, unsigned hashes, double *ret_slope)
{
    double load = 0;
    double power = 1;
    *ret_slope = 0;
    for (unsigned j = 1; j <= hashes; j++) {
        *ret_slope += power;
        power *= fill;
        load += power / j;
    }
    return load;
}

struct bloom_layer bloom_layer(const struct bloom_params *params, unsigned index)
{
    struct bloom_layer layer = {.rules = params->rules,
        .capacity = params->capacity,
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
    layer.hashes = (unsigned)ceil(LN2 * bits_per_item);
    uint64_t more = 0;
    if (params->rules == BLOOM_OWN) {
        double slope;
        double fill = pow(layer.error, 1.0 / layer.hashes);
        bits_per_item = layer.hashes / load_of_fill(fill, layer.hashes, &slope);
        more = 64;
    }
    double items = (double)layer.capacity;
    double bits = items * bits_per_item;
    if (bits > (double)params->segment_bits) {
        /* The spare must not make a segment longer than it may be. */
        layer.segments =
            (uint64_t)ceil(bits * (1 + SEGMENT_SPARE) / (double)(params->segment_bits - 64 - more));
        items = ceil(items / (double)layer.segments) * (1 + SEGMENT_SPARE);
    }
    layer.bits = (uint64_t)(items * bits_per_item);
    layer.bits = layer.bits == 0 ? 64 : (layer.bits + 63) / 64 * 64 + more;
    return layer;
}

double bloom_fill(const struct bloom_layer *layer, uint64_t items)
{
    double bits = (double)layer->bits * (double)layer->segments;
    double load = (double)layer->hashes * (double)items / bits;
    double fill = -expm1(-load);
    if (layer->rules != BLOOM_OWN) {
        return fill;
    }
    /* Newton's iteration.  The sum is convex, so the iteration approaches from above. */
    for (unsigned i = 0; i < 64; i++) {
        double slope;
        double step = (load_of_fill(fill, layer->hashes, &slope) - load) / slope;
        fill = fmin(fill - step, 1);
        if (fabs(step) < 1e-12) {
            break;
        }
    }
    return fill;
}

double bloom_false_positives(const struct bloom_layer *layer, uint64_t items)
{
    double k = layer->hashes;
    double fill = bloom_fill(layer, items);
    if (layer->rules != BLOOM_OWN || items == 0) {
        return pow(fill, k);
    }
    /* The share of set bits varies: E(F^k) = E(F)^k (1 + k(k-1)/2 Var(F)/E(F)^2). */
    double load = k * (double)items / ((double)layer->bits * (double)layer->segments);
    double empty = 1 - fill;
    double variance = empty * (1 - (1 + load) * empty) / (double)layer->bits;
    return fmin(pow(fill, k) * (1 + k * (k - 1) / 2 * fmax(variance, 0) / (fill * fill)), 1);
}

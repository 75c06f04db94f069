#include "handlers/text/robots_cache.h"

#include <sodium.h>
#include <string.h>

#define TAKEN UINT64_C(2)
#define ROBOT UINT64_C(1)

_Static_assert(ROBOTS_CACHE_KEY_BYTES == crypto_shorthash_siphash24_KEYBYTES, "SipHash's key");
_Static_assert(sizeof(uint64_t) == crypto_shorthash_siphash24_BYTES, "64 bits");

void robots_cache_init(
    struct robots_cache *cache, const unsigned char key[static ROBOTS_CACHE_KEY_BYTES])
{
    robots_init(&cache->robots);
    memcpy(cache->key, key, sizeof(cache->key));
    for (size_t i = 0; i < ROBOTS_CACHE_SLOTS; i++) {
        atomic_init(&cache->seen[i], 0);
    }
}

bool robots_cache_known(struct robots_cache *cache, struct slice user_agent)
{
    uint64_t digest;
    size_t n = user_agent.n < ROBOTS_LOOKED_AT ? user_agent.n : ROBOTS_LOOKED_AT;
    if (n == 0) {
        return false;
    }
    (void)crypto_shorthash_siphash24(
        (unsigned char *)&digest, (const unsigned char *)user_agent.p, n, cache->key);
    _Atomic uint64_t *place = &cache->seen[digest >> (64 - ROBOTS_CACHE_BITS)];
    uint64_t word = (digest & ~(TAKEN | ROBOT)) | TAKEN;
    uint64_t found = atomic_load_explicit(place, memory_order_relaxed);
    if ((found & ~ROBOT) == word) {
        return (found & ROBOT) != 0;
    }
    bool known = robots_known(&cache->robots, user_agent);
    /* The slot is one word, so a thread that reads it now sees one agent or the other whole. */
    atomic_store_explicit(place, known ? word | ROBOT : word, memory_order_relaxed);
    return known;
}

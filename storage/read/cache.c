#include "storage/read/cache.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/cond.h"

_Static_assert(crypto_shorthash_siphashx24_BYTES == sizeof(struct cache_id), "128 bits");

#define VALUE_USUAL 128 /* bytes of a usual value: there is a chain for each so many bytes */
#define HEADS_MIN   16  /* chains that there are at least */
#define MALLOC_HEAD 16  /* bytes that the allocator takes for a block itself */

const struct ver cache_no_proof = {1, "-"};

struct entry {
    struct cache_id id;
    uint64_t proof;              /* ver_hash() of the id that proves the value */
    struct entry *chain;         /* the next entry in the same chain */
    struct entry *newer, *older; /* in the order of their last use */
    size_t n;                    /* bytes of the value */
    unsigned char value[];
};

struct cache {
    pthread_mutex_t lock; /* guards all but the key and the sizes */
    struct entry **heads;
    size_t n_heads; /* a power of two */
    struct entry *newest, *oldest;
    size_t bytes, limit;
    unsigned char key[crypto_shorthash_siphashx24_KEYBYTES];
};

struct cache *cache_new(size_t bytes)
{
    struct cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        return NULL;
    }
    cache->n_heads = HEADS_MIN;
    while (cache->n_heads < bytes / VALUE_USUAL) {
        cache->n_heads *= 2;
    }
    cache->heads = calloc(cache->n_heads, sizeof(struct entry *));
    if (cache->heads == NULL) {
        free(cache);
        return NULL;
    }
    size_t heads = cache->n_heads * sizeof(struct entry *);
    cache->limit = bytes > heads ? bytes - heads : 0;
    randombytes_buf(cache->key, sizeof(cache->key));
    mutex_init(&cache->lock);
    return cache;
}

void cache_free(struct cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (struct entry *e = cache->newest; e != NULL;) {
        struct entry *older = e->older;
        free(e);
        e = older;
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache->heads);
    free(cache);
}

struct cache_id cache_id(const struct cache *cache, const void *text, size_t n)
{
    struct cache_id id;
    crypto_shorthash_siphashx24(id.bytes, text, n, cache->key);
    return id;
}

/* ---- under the lock ---- */

static struct entry **head_of(struct cache *cache, const struct cache_id *id)
{
    uint64_t hash;
    memcpy(&hash, id->bytes, sizeof(hash));
    return &cache->heads[hash & (cache->n_heads - 1)];
}

static struct entry *find_entry(struct cache *cache, const struct cache_id *id)
{
    struct entry *e = *head_of(cache, id);
    while (e != NULL && memcmp(e->id.bytes, id->bytes, sizeof(id->bytes)) != 0) {
        e = e->chain;
    }
    return e;
}

static size_t entry_size(size_t n)
{
    return sizeof(struct entry) + n + MALLOC_HEAD;
}

static void unlink_use(struct cache *cache, struct entry *e)
{
    *(e == cache->newest ? &cache->newest : &e->newer->older) = e->older;
    *(e == cache->oldest ? &cache->oldest : &e->older->newer) = e->newer;
}

static void link_newest(struct cache *cache, struct entry *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = e;
    cache->newest = e;
}

static void drop_entry(struct cache *cache, struct entry *e)
{
    for (struct entry **at = head_of(cache, &e->id); *at != NULL; at = &(*at)->chain) {
        if (*at == e) {
            *at = e->chain;
            break;
        }
    }
    unlink_use(cache, e);
    cache->bytes -= entry_size(e->n);
    free(e);
}

/* ---- for all ---- */

bool cache_get(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    void (*use)(void *data, const void *value, size_t n), void *data)
{
    bool found = false;
    uint64_t proof = ver_hash(ver);
    pthread_mutex_lock(&cache->lock);
    struct entry *e = find_entry(cache, id);
    if (e != NULL && ver->n > 0 && e->proof == proof) {
        unlink_use(cache, e);
        link_newest(cache, e);
        use(data, e->value, e->n);
        found = true;
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

void cache_append_to(void *buffer, const void *value, size_t n)
{
    buffer_append(buffer, value, n);
}

void cache_copy_to(void *to, const void *value, size_t n)
{
    memcpy(to, value, n);
}

void cache_put(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    const void *value, size_t n)
{
    if (ver->n == 0 || n > cache->limit || entry_size(n) > cache->limit) {
        return;
    }
    struct entry *made = malloc(sizeof(*made) + n);
    if (made == NULL) {
        return;
    }
    made->id = *id;
    made->proof = ver_hash(ver);
    made->n = n;
    if (n > 0) { /* else @value may be NULL, which memcpy() must not get */
        memcpy(made->value, value, n);
    }
    pthread_mutex_lock(&cache->lock);
    struct entry *before = find_entry(cache, id);
    if (before != NULL) {
        drop_entry(cache, before);
    }
    while (cache->oldest != NULL && cache->bytes + entry_size(n) > cache->limit) {
        drop_entry(cache, cache->oldest);
    }
    struct entry **head = head_of(cache, id);
    made->chain = *head;
    *head = made;
    link_newest(cache, made);
    cache->bytes += entry_size(n);
    pthread_mutex_unlock(&cache->lock);
}

size_t cache_bytes(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    size_t bytes = cache->bytes;
    pthread_mutex_unlock(&cache->lock);
    return bytes;
}

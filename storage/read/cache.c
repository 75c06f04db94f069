#include "storage/read/cache.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/cond.h"

_Static_assert(crypto_shorthash_siphashx24_BYTES == sizeof((struct cache_id){0}.bytes), "128 bits");

#define VALUE_USUAL 128  /* bytes of a usual value: there is a chain for each so many bytes */
#define HEADS_MIN   16   /* chains that there are at least */
#define MALLOC_HEAD 16   /* bytes that the allocator takes for a block itself */
#define LARGE       2048 /* a value of more bytes is a large one */
#define LARGE_PART  4    /* large values with more than a 4th of the cache make room first */

const struct ver cache_no_proof = {1, "-"};

struct entry {
    uint8_t name[16];            /* the bytes of its struct cache_id */
    uint64_t proof;              /* proof_in() of the id that proves the value, and of the range */
    struct entry *chain;         /* the next entry in the same chain */
    struct entry *newer, *older; /* in the order of their last use */
    size_t n;                    /* bytes of the value */
    unsigned char value[];
};

/* Entries in the order of their last use. */
struct uses {
    struct entry *newest, *oldest;
    size_t bytes;
};

struct cache {
    pthread_mutex_t lock; /* guards all but the key and the sizes */
    struct entry **heads;
    size_t n_heads; /* a power of two */
    struct uses small, large;
    size_t limit;
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

static void free_all(struct uses *uses)
{
    for (struct entry *e = uses->newest; e != NULL;) {
        struct entry *older = e->older;
        free(e);
        e = older;
    }
}

void cache_free(struct cache *cache)
{
    if (cache == NULL) {
        return;
    }
    free_all(&cache->small);
    free_all(&cache->large);
    pthread_mutex_destroy(&cache->lock);
    free(cache->heads);
    free(cache);
}

struct cache_id cache_id(const struct cache *cache, const void *text, size_t n)
{
    struct cache_id id = {.range = 0};
    crypto_shorthash_siphashx24(id.bytes, text, n, cache->key);
    return id;
}

/* ---- under the lock ---- */

static struct entry **head_of(struct cache *cache, const uint8_t name[16])
{
    uint64_t hash;
    memcpy(&hash, name, sizeof(hash));
    return &cache->heads[hash & (cache->n_heads - 1)];
}

static struct entry *find_entry(struct cache *cache, const struct cache_id *id)
{
    struct entry *e = *head_of(cache, id->bytes);
    while (e != NULL && memcmp(e->name, id->bytes, sizeof(e->name)) != 0) {
        e = e->chain;
    }
    return e;
}

/* A value has to have been put with the same @ver, for the same range. */
static uint64_t proof_in(const struct cache_id *id, const struct ver *ver)
{
    return ver_hash(ver) ^ id->range;
}

static size_t entry_size(size_t n)
{
    return sizeof(struct entry) + n + MALLOC_HEAD;
}

static struct uses *uses_of(struct cache *cache, const struct entry *e)
{
    return e->n > LARGE ? &cache->large : &cache->small;
}

static void unlink_use(struct uses *uses, struct entry *e)
{
    *(e == uses->newest ? &uses->newest : &e->newer->older) = e->older;
    *(e == uses->oldest ? &uses->oldest : &e->older->newer) = e->newer;
    uses->bytes -= entry_size(e->n);
}

static void link_newest(struct uses *uses, struct entry *e)
{
    e->newer = NULL;
    e->older = uses->newest;
    *(uses->newest != NULL ? &uses->newest->newer : &uses->oldest) = e;
    uses->newest = e;
    uses->bytes += entry_size(e->n);
}

static void drop_entry(struct cache *cache, struct uses *uses, struct entry *e)
{
    for (struct entry **at = head_of(cache, e->name); *at != NULL; at = &(*at)->chain) {
        if (*at == e) {
            *at = e->chain;
            break;
        }
    }
    unlink_use(uses, e);
    free(e);
}

/* Drop values until there is room for @n bytes more. */
static void make_room(struct cache *cache, size_t n)
{
    while (cache->small.bytes + cache->large.bytes + n > cache->limit) {
        bool drops_large =
            cache->large.bytes > cache->limit / LARGE_PART || cache->small.oldest == NULL;
        struct uses *uses = drops_large ? &cache->large : &cache->small;
        drop_entry(cache, uses, uses->oldest);
    }
}

/* ---- for all ---- */

bool cache_get(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    void (*use)(void *data, const void *value, size_t n), void *data)
{
    bool found = false;
    uint64_t proof = proof_in(id, ver);
    pthread_mutex_lock(&cache->lock);
    struct entry *e = find_entry(cache, id);
    if (e != NULL && ver->n > 0 && e->proof == proof) {
        unlink_use(uses_of(cache, e), e);
        link_newest(uses_of(cache, e), e);
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
    memcpy(made->name, id->bytes, sizeof(made->name));
    made->proof = proof_in(id, ver);
    made->n = n;
    if (n > 0) { /* else @value may be NULL, which memcpy() must not get */
        memcpy(made->value, value, n);
    }
    pthread_mutex_lock(&cache->lock);
    struct entry *before = find_entry(cache, id);
    if (before != NULL) {
        drop_entry(cache, uses_of(cache, before), before);
    }
    make_room(cache, entry_size(n));
    struct entry **head = head_of(cache, id->bytes);
    made->chain = *head;
    *head = made;
    link_newest(uses_of(cache, made), made);
    pthread_mutex_unlock(&cache->lock);
}

size_t cache_bytes(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    size_t bytes = cache->small.bytes + cache->large.bytes;
    pthread_mutex_unlock(&cache->lock);
    return bytes;
}

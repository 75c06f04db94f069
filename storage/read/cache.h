/* cache.h - bounded memory of what was read from buckets that are over, each proved by its
 * partition's `ver` (or `over`, which is the same for minutes of the open hour).
 *
 * Layer: storage.  Thread-safe; values are copied in, and used under the lock.
 *
 * ARCHITECTURE.md, "Remembering what is over": a value is stored with the `ver` of the MULTI that
 * read it, and may be used iff the `ver` read for this very question is equal.  `ver` is a random
 * id, new with every write into a closed bucket and every bucket that is closed, and goes back with
 * the data it belongs to: equal ids, equal buckets, also after Redis lost its last second.  Whoever
 * asks here compares what the cache gave with the `ver` that Redis then says; the cache knows no
 * Redis.
 *
 * When it is full, what was not used for longest goes; a value of an older `ver` is overwritten, or
 * goes that way.
 */
#ifndef STORAGE_READ_CACHE_H
#define STORAGE_READ_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/schema/rolled.h"

struct cache;

/* What a value is of: a hash of 128 bits, keyed with random bytes of this process, so that no
 * page's name can be made to collide with another's. */
struct cache_id {
    uint8_t bytes[16];
};

/* @bytes: most that values and their administration may take.  NULL: out of memory.  A cache of 0
 * bytes is legal and keeps nothing. */
struct cache *cache_new(size_t bytes);
void cache_free(struct cache *cache); /* NULL is harmless */

/* The id of @n bytes in this cache: keyed, so another cache has another id for them. */
struct cache_id cache_id(const struct cache *cache, const void *text, size_t n);

/* Have @use look at the value, under the lock: it must be quick.  False: there is none with this
 * @ver. */
bool cache_get(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    void (*use)(void *data, const void *value, size_t n), void *data);

/* Keep a copy of @value, instead of an older one.  Without memory, or if it is larger than the
 * whole cache, nothing is kept. */
void cache_put(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    const void *value, size_t n);

size_t cache_bytes(struct cache *cache); /* in use */

#endif

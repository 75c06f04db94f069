/* cache.h - bounded memory of what was read from buckets that are over, and of filters of /seen.
 *
 * Layer: storage.  Thread-safe; values are copied in, and used under the lock.
 *
 * A value is stored with a proof: a random id that Redis keeps, and that is new after every change
 * to what the value was made of (storage/read/README.md).  A caller gets the value only for the
 * same id, and then has Redis say that the id is still that one.  The cache itself knows no Redis.
 *
 * When the cache is full, the value that was not used for longest is dropped: a large one while
 * these have more than a fourth of the cache, else a small one of at most 2 KiB.  A sketch takes up
 * to 12 KiB, and is read again by one command.  A sum of visits takes half a KiB, and is read again
 * by a command for each partition and minute.  A value whose id is not current any more is
 * overwritten, or dropped in that way.
 */
#ifndef STORAGE_READ_CACHE_H
#define STORAGE_READ_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/schema/partition_state.h"

struct cache;

/* The name of a value: a hash of 128 bits, keyed with random bytes of this process, so that nobody
 * can choose a page's name that collides with another's.
 *
 * Of values that replace each other, as of windows that end now, there is room for one: they have
 * the same bytes, and each a range of its own.  A value is found by the same range only. */
struct cache_id {
    uint8_t bytes[16];
    uint64_t range; /* 0: the value shares its name with none */
};

/* Make a cache that takes about @bytes at most, values and administration together.  A cache of 0
 * bytes is legal and keeps nothing.  NULL: out of memory. */
struct cache *cache_new(size_t bytes);
void cache_free(struct cache *cache); /* NULL is harmless */

/* The name that the @n bytes of @text have in this cache.  In another cache they have another. */
struct cache_id cache_id(const struct cache *cache, const void *text, size_t n);

/* Have @use look at the value that is stored under @id with the proof @ver.  @use is called under
 * the lock, so it must be quick.  False: there is no such value. */
bool cache_get(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    void (*use)(void *data, const void *value, size_t n), void *data);

/* A function for @use: append the value to the struct buffer @buffer. */
void cache_append_to(void *buffer, const void *value, size_t n);

/* Keep a copy of the @n bytes of @value, under @id, in place of an older value.  Nothing is kept
 * without memory, of a value larger than the whole cache, or if @ver is empty. */
void cache_put(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    const void *value, size_t n);

/* The proof of a value that needs none as a whole, because each of its parts has its own. */
extern const struct ver cache_no_proof;

/* How many bytes the values take now, with their administration. */
size_t cache_bytes(struct cache *cache);

#endif

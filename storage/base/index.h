/* index.h - a hash index over items that live in the caller's array.
 *
 * Layer: storage, pure.  One owner.  Open addressing, linear probing; items are never removed, only
 * all forgotten.  The caller compares items: the index stores positions and hashes.
 */
#ifndef STORAGE_BASE_INDEX_H
#define STORAGE_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_slot {
    uint32_t item; /* INDEX_NONE: empty */
    uint32_t hash;
};

struct index {
    struct index_slot *slots;
    size_t size, used; /* size is a power of two, or 0 */
};

void index_clear(struct index *index);
void index_release(struct index *index);
/* Make room for one more item.  False: out of memory. */
bool index_reserve(struct index *index);
/* The slot of the first item for which @same is true, or the empty slot where it belongs.
 * index_reserve was called before. */
struct index_slot *index_find(struct index *index, uint64_t hash,
    bool (*same)(const void *context, uint32_t item), const void *context);
/* Fill an empty slot. */
void index_set(struct index *index, struct index_slot *slot, uint64_t hash, uint32_t item);

/* Grow *@array of @size-byte items so that it holds more than @n; true on success. */
bool array_reserve(void *array, size_t *capacity, size_t n, size_t size);

#endif

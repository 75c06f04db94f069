/* index.h - finds an item of an array by its hash.
 *
 * Layer: storage, pure.  Not thread-safe: an index has one owner.
 *
 * The items live in the caller's array.  The index stores the position and the hash of each item,
 * and the caller compares items.  An item cannot be removed alone; all are forgotten at once.
 * Algorithm: open addressing with linear probing, at most half full.
 */
#ifndef STORAGE_BASE_INDEX_H
#define STORAGE_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"

#define INDEX_NONE UINT32_MAX

struct index_slot {
    uint32_t item; /* position in the caller's array; INDEX_NONE: the slot is empty */
    uint32_t hash;
};

/* A zeroed index is empty and owns nothing. */
struct index {
    struct index_slot *slots; /* owned */
    size_t size, used;        /* size is a power of two, or 0 */
};

/* Forget all items.  index_clear() keeps the memory, or half of it if only a small part was used;
 * index_release() frees all memory. */
void index_clear(struct index *index);
void index_release(struct index *index);

/* Make room for @n items in all: up to then index_reserve() need not be called.  False: out of
 * memory, and the index is as it was. */
bool index_expect(struct index *index, size_t n) MUST_CHECK;

/* Make room for one more item.  False: out of memory, and the index is as it was. */
bool index_reserve(struct index *index) MUST_CHECK;

/* Return the slot of the first item of @hash for which @same is true, or the empty slot where such
 * an item belongs.  The caller has called index_reserve before.  The slot is valid until the next
 * index_reserve.  @same gets @context and the position of an item. */
struct index_slot *index_find(const struct index *index, uint64_t hash,
    bool (*same)(const void *context, uint32_t item), const void *context);

/* Fill an empty slot that index_find returned for @hash. */
void index_set(struct index *index, struct index_slot *slot, uint64_t hash, uint32_t item);

/* Grow an array that is full, so that it holds more than @n items.  @array points to the caller's
 * pointer to the first item, which may move; items have @size bytes.  False: out of memory, and the
 * array is as it was. */
bool array_reserve(void *array, size_t *capacity, size_t n, size_t size) MUST_CHECK;

/* Give back half of the memory of an array whose @n items are no longer needed, if they took only a
 * small part of it: so a single peak does not keep its memory for ever. */
void array_relax(void *array, size_t *capacity, size_t n, size_t size);

/* The same for the array @name of *owner, whose members n_<name> and <name>_capacity say how many
 * items there are, and for how many there is room.  ARRAY_CLEAR() also forgets the items. */
#define ARRAY_RESERVE(owner, name)                                                                 \
    array_reserve(                                                                                 \
        &(owner)->name, &(owner)->name##_capacity, (owner)->n_##name, sizeof(*(owner)->name))
#define ARRAY_CLEAR(owner, name)                                                                   \
    do {                                                                                           \
        array_relax(                                                                               \
            &(owner)->name, &(owner)->name##_capacity, (owner)->n_##name, sizeof(*(owner)->name)); \
        (owner)->n_##name = 0;                                                                     \
    } while (false)

/* Find the item of @hash for which @same is true, or add a new item, which the caller fills in
 * before anything else; *ret_new tells which.  Returns the item's number; INDEX_NONE: out of
 * memory.  The arguments are those of index_find() and array_reserve(). */
uint32_t index_add(struct index *index, uint64_t hash,
    bool (*same)(const void *context, uint32_t item), const void *context, void *array,
    size_t *capacity, size_t *n, size_t size, bool *ret_new) MUST_CHECK;

/* The same for the index @of and the array @name of *owner, whose members are named as for
 * ARRAY_RESERVE(). */
#define INDEX_ADD(owner, of, name, hash, same, context, ret_new)                                   \
    index_add(&(owner)->of, hash, same, context, &(owner)->name, &(owner)->name##_capacity,        \
        &(owner)->n_##name, sizeof(*(owner)->name), ret_new)

#endif

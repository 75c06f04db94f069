#include "storage/base/index.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MIN   64
#define ITEMS_MIN  16
#define SMALL_PART 8 /* if less than one in 8 places was used, half of the memory is plenty */

static uint32_t fold_hash(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/* Keep half of the slots only.  Without memory for them all are kept. */
static void index_relax(struct index *index)
{
    size_t size = index->size / 2;
    struct index_slot *slots = realloc(index->slots, size * sizeof(*slots));
    if (slots != NULL) { /* without memory the old slots are kept */
        index->slots = slots;
        index->size = size;
    }
}

void index_clear(struct index *index)
{
    if (index->size > SIZE_MIN && index->used < index->size / SMALL_PART) {
        index_relax(index);
    }
    if (index->used > 0) { /* a slot with all bits set has the item INDEX_NONE */
        memset(index->slots, 0xff, index->size * sizeof(*index->slots));
        index->used = 0;
    }
}

void index_release(struct index *index)
{
    free(index->slots);
    *index = (struct index){0};
}

static bool index_resize(struct index *index, size_t size)
{
    struct index_slot *slots = malloc(size * sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    memset(slots, 0xff, size * sizeof(*slots));
    for (size_t i = 0; i < index->size; i++) {
        if (index->slots[i].item == INDEX_NONE) {
            continue;
        }
        size_t at = index->slots[i].hash & (size - 1);
        while (slots[at].item != INDEX_NONE) {
            at = (at + 1) & (size - 1);
        }
        slots[at] = index->slots[i];
    }
    free(index->slots);
    index->slots = slots;
    index->size = size;
    return true;
}

bool index_expect(struct index *index, size_t n)
{
    size_t size = SIZE_MIN;
    while (size < n * 2) {
        size *= 2;
    }
    return size <= index->size || index_resize(index, size);
}

bool index_reserve(struct index *index)
{
    if (index->size == 0) {
        return index_resize(index, SIZE_MIN);
    }
    return index->used * 2 < index->size || index_resize(index, index->size * 2);
}

struct index_slot *index_find(const struct index *index, uint64_t hash,
    bool (*same)(const void *context, uint32_t item), const void *context)
{
    uint32_t h = fold_hash(hash);
    size_t at = h & (index->size - 1);
    while (index->slots[at].item != INDEX_NONE) {
        if (index->slots[at].hash == h && same(context, index->slots[at].item)) {
            break;
        }
        at = (at + 1) & (index->size - 1);
    }
    return &index->slots[at];
}

void index_set(struct index *index, struct index_slot *slot, uint64_t hash, uint32_t item)
{
    *slot = (struct index_slot){.item = item, .hash = fold_hash(hash)};
    index->used++;
}

bool array_reserve(void *array, size_t *capacity, size_t n, size_t size)
{
    if (n < *capacity) {
        return true;
    }
    size_t more = *capacity == 0 ? ITEMS_MIN : *capacity;
    while (more <= n) {
        more *= 2;
    }
    void *old;
    memcpy(&old, array, sizeof(old));
    void *p = reallocarray(old, more, size);
    if (p == NULL) {
        return false;
    }
    memcpy(array, &p, sizeof(p));
    *capacity = more;
    /* cppcheck-suppress memleak ; *array owns it */
    return true;
}

void array_relax(void *array, size_t *capacity, size_t n, size_t size)
{
    if (*capacity <= ITEMS_MIN || n >= *capacity / SMALL_PART) {
        return;
    }
    void *old;
    memcpy(&old, array, sizeof(old));
    void *p = reallocarray(old, *capacity / 2, size);
    if (p != NULL) { /* otherwise the array stays as large as it was */
        memcpy(array, &p, sizeof(p));
        *capacity /= 2;
    }
    /* cppcheck-suppress memleak ; *array owns it */
}

uint32_t index_add(struct index *index, uint64_t hash,
    bool (*same)(const void *context, uint32_t item), const void *context, void *array,
    size_t *capacity, size_t *n, size_t size, bool *ret_new)
{
    *ret_new = false;
    if (!index_reserve(index) || !array_reserve(array, capacity, *n, size)) {
        return INDEX_NONE;
    }
    struct index_slot *slot = index_find(index, hash, same, context);
    *ret_new = slot->item == INDEX_NONE;
    if (*ret_new) {
        index_set(index, slot, hash, (uint32_t)(*n)++);
    }
    return slot->item;
}

#include "storage/pages/sums.h"

#include <stdlib.h>
#include <string.h>

#include "storage/pages/table.h"
#include "storage/schema/partition.h"

void page_sums_clear(struct page_sums *sums)
{
    arena_clear(&sums->arena);
    index_clear(&sums->index);
    sums->n = 0;
}

void page_sums_release(struct page_sums *sums)
{
    arena_release(&sums->arena);
    index_release(&sums->index);
    free(sums->all);
    *sums = (struct page_sums){0};
}

struct wanted {
    const struct page_sums *sums;
    struct slice page;
};

static bool same_page(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    return slice_equal(wanted->sums->all[number].page, wanted->page);
}

static bool add_sum(struct page_sums *sums, struct slice page, uint32_t *ret)
{
    if (!arena_copy(&sums->arena, &page) ||
        !array_reserve(&sums->all, &sums->capacity, sums->n, sizeof(*sums->all))) {
        return false;
    }
    *ret = (uint32_t)sums->n;
    sums->all[sums->n++] = (struct page_sum){.page = page};
    return true;
}

bool page_sums_find(
    struct page_sums *sums, struct slice site, struct slice page, bool add, uint32_t *ret)
{
    struct wanted wanted = {sums, page};
    uint64_t hash = page_hash(site, page);
    if (!index_reserve(&sums->index)) {
        return false;
    }
    struct index_slot *slot = index_find(&sums->index, hash, same_page, &wanted);
    *ret = slot->item;
    if (slot->item != INDEX_NONE || !add) {
        return true;
    }
    if (!add_sum(sums, page, ret)) {
        return false;
    }
    index_set(&sums->index, slot, hash, *ret);
    return true;
}

bool page_sums_reserve_present(struct page_sums *sums, uint32_t i, size_t n_buckets)
{
    struct page_sum *sum = &sums->all[i];
    if (sum->present == NULL) {
        sum->present = arena_alloc(&sums->arena, page_bits_size(n_buckets) + 1);
        if (sum->present != NULL) {
            memset(sum->present, 0, page_bits_size(n_buckets) + 1);
        }
    }
    return sum->present != NULL;
}

void page_sums_take(struct page_sums *sums, uint32_t i, uint32_t turn, size_t bucket, uint64_t pv)
{
    struct page_sum *sum = &sums->all[i];
    uint64_t before = sum->last == turn ? sum->last_pv : 0;
    sum->present[bucket / 8] |= (uint8_t)(1u << (bucket & 7));
    if (pv > before) {
        sum->pv += pv - before;
        sum->last_pv = pv;
        sum->last = turn;
    }
}

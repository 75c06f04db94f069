#include "storage/pages/capped.h"

#include <stdlib.h>
#include <string.h>

#include "storage/pages/table.h"

bool capped_runs_add(struct capped_runs *runs, const struct capped_run *run, const uint8_t *present,
    struct arena *arena)
{
    if (!array_reserve(&runs->all, &runs->capacity, runs->n, sizeof(*runs->all))) {
        return false;
    }
    struct capped_run *added = &runs->all[runs->n];
    *added = *run;
    added->present = NULL;
    if (present != NULL) {
        added->present = arena_alloc(arena, page_bits_size(run->n) + 1);
        if (added->present == NULL) {
            return false;
        }
        memcpy(added->present, present, page_bits_size(run->n));
    }
    runs->n++;
    return true;
}

static bool has_bit(const uint8_t *bits, size_t i)
{
    return (bits[i / 8] >> (i & 7) & 1) != 0;
}

/* Is the name in a bucket of the hour that bucket @i is, or lies in? */
static bool is_in_hour(
    const struct page_sum *sum, size_t i, const struct cover *cover, const struct zone *zone)
{
    struct bucket hour = bucket_at(zone, LEVEL_HOUR, cover->buckets[i].start_s);
    while (i > 0 && cover->buckets[i - 1].level <= LEVEL_HOUR &&
           cover->buckets[i - 1].start_s >= hour.start_s) {
        i--;
    }
    for (; i < cover->n && cover->buckets[i].start_s < hour.end_s; i++) {
        if (cover->buckets[i].level <= LEVEL_HOUR && has_bit(sum->present, i)) {
            return true;
        }
    }
    return false;
}

/* Did the name have its place in all of the run? */
static bool is_whole(const struct capped_run *run, const struct page_sum *sum,
    const struct cover *cover, const struct zone *zone)
{
    if (sum->present == NULL || run->first + run->n > cover->n ||
        cover->buckets[run->first].level > LEVEL_HOUR) {
        return false;
    }
    for (size_t i = 0; i < run->n; i++) {
        if ((run->present == NULL || has_bit(run->present, i)) &&
            !is_in_hour(sum, run->first + i, cover, zone)) {
            return false;
        }
    }
    return true;
}

uint64_t capped_runs_hide(const struct capped_runs *runs, const struct page_sum *sum,
    unsigned partition, const struct cover *cover, const struct zone *zone)
{
    uint64_t pv = 0;
    for (size_t i = 0; i < runs->n; i++) {
        const struct capped_run *run = &runs->all[i];
        if (run->partition == partition && !is_whole(run, sum, cover, zone)) {
            pv += run->pv;
        }
    }
    return pv;
}

uint64_t capped_runs_pv(const struct capped_runs *runs)
{
    uint64_t pv = 0;
    for (size_t i = 0; i < runs->n; i++) {
        pv += runs->all[i].pv;
    }
    return pv;
}

void capped_runs_release(struct capped_runs *runs)
{
    free(runs->all);
    *runs = (struct capped_runs){0};
}

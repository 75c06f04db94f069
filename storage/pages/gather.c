#include "storage/pages/gather.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/job/event.h"
#include "storage/job/counted_name.h"
#include "storage/pages/table.h"

void slot_release(struct slot *slot)
{
    free(slot->staged);
}

/* ---- sums ---- */

/* Is @name of the class, and does it begin with the prefix, that are asked for? */
static bool is_wanted(const struct gathering *g, struct slice name)
{
    bool in_class =
        g->class.n == 0 ? counted_name_mark(name) == '\0' : slice_begins(name, g->class);
    return in_class && slice_begins(name, g->prefix);
}

/* Find or make the sum of a page among the question's sums.  *ret is INDEX_NONE if the page is not
 * asked for. */
static enum storage_err find_asked(const struct gathering *g, struct slice page, uint32_t *ret)
{
    struct page_sums *sums = g->sums;
    *ret = INDEX_NONE;
    if (!is_wanted(g, page)) {
        return STORAGE_OK;
    }
    if (sums->n >= g->n_most) {
        return STORAGE_TOO_BROAD;
    }
    if (!page_sums_find(sums, g->r->asked->site, page, !g->chosen, ret)) {
        return STORAGE_NOMEM;
    }
    bool ok = *ret == INDEX_NONE || page_sums_reserve_present(sums, *ret, g->n_buckets);
    return ok ? STORAGE_OK : STORAGE_NOMEM;
}

/* Find or make the sum of a page of the slot's bucket among @own, the sums of its run, which have
 * all pages. */
static enum storage_err find_own(const struct gathering *g, struct page_sums *own,
    const struct slot *slot, struct slice page, uint32_t *ret)
{
    char text[RUN_PAGE_MAX];
    struct slice name = pages_memory_own_name(page, slot->bucket - slot->run->first, text);
    if (own->n >= g->n_most) {
        return STORAGE_TOO_BROAD;
    }
    bool ok = page_sums_find(own, g->r->asked->site, name, true, ret) &&
              page_sums_reserve_present(own, *ret, slot->run->n);
    return ok ? STORAGE_OK : STORAGE_NOMEM;
}

/* Which of @n bits is set in an entry of what a cap put together: there is one (pages/table.h). */
static size_t only_bit(const uint8_t *bits, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && !page_bit(bits, i)) {
        i++;
    }
    return i;
}

/* Add everything that a run's table has to the question's sums. */
static enum storage_err add_table(
    struct gathering *g, unsigned p, const struct remembered_run *run, struct slice table)
{
    enum storage_err err = STORAGE_OK;
    struct page_entry entry;
    size_t at = 0;
    while (err == STORAGE_OK && page_table_next(table, run->n, &at, &entry)) {
        uint32_t i;
        if (counted_name_is_other(entry.page, g->class)) {
            struct capped_bucket capped = {
                p, run->first + only_bit(entry.present, run->n), entry.pv};
            err = capped_buckets_add(g->capped, &capped) ? STORAGE_OK : STORAGE_NOMEM;
            continue;
        }
        err = find_asked(g, entry.page, &i);
        if (err != STORAGE_OK || i == INDEX_NONE) {
            continue;
        }
        struct page_sum *sum = &g->sums->all[i];
        sum->pv += entry.pv;
        for (size_t b = 0; b < run->n; b++) {
            size_t to = run->first + b;
            sum->present[to / 8] |= (uint8_t)(page_bit(entry.present, b) << (to & 7));
        }
    }
    return err;
}

static enum storage_err finish_run(struct gathering *g, unsigned p, struct remembered_run *run)
{
    struct slice table;
    if (!pages_memory_table(&g->memory, p, run, &table)) {
        return STORAGE_NOMEM;
    }
    return add_table(g, p, run, table);
}

enum storage_err gathering_add_recalled(struct gathering *g)
{
    enum storage_err err = STORAGE_OK;
    for (unsigned p = 0; p < g->r->core->partitions.n; p++) {
        const struct partition_runs *of = &g->memory.of[p];
        for (size_t i = 0; err == STORAGE_OK && i < of->runs.n; i++) {
            if (of->sums[i].left == 0) {
                err = finish_run(g, p, &of->runs.all[i]);
            }
        }
    }
    return err;
}

/* ---- a bucket ---- */

void slot_begin(struct gathering *g, unsigned p, struct slot *slot, size_t bucket)
{
    struct remembered_run *run = pages_memory_run(&g->memory, p, bucket);
    bool own = run != NULL &&
               pages_memory_has_room(&g->memory, pages_memory_sums(&g->memory, p, run), run->n);
    slot->busy = true;
    slot->bucket = bucket;
    slot->run = own ? run : NULL;
    slot->n_staged = 0;
    slot->other = 0;
    memcpy(slot->cursor, "0", 2);
}

/* The scan of the slot's bucket is through: add its pages to the sums.  If the run is read now, its
 * table is made. */
static enum storage_err slot_end(struct gathering *g, unsigned p, struct slot *slot)
{
    struct remembered_run *run = pages_memory_run(&g->memory, p, slot->bucket);
    struct run_sums *of_run = run != NULL ? pages_memory_sums(&g->memory, p, run) : NULL;
    struct page_sums *sums = slot->run != NULL ? &of_run->own : g->sums;
    size_t bucket = slot->bucket - (slot->run != NULL ? slot->run->first : 0);
    uint32_t turn = ++g->memory.turn;
    for (size_t i = 0; i < slot->n_staged; i++) {
        page_sums_take(sums, slot->staged[i].sum, turn, bucket, slot->staged[i].pv);
    }
    slot->n_staged = 0;
    slot->busy = false;
    g->buckets_read++;
    if (slot->other > 0) {
        struct capped_bucket capped = {p, slot->bucket, slot->other};
        if (!capped_buckets_add(g->capped, &capped)) {
            return STORAGE_NOMEM;
        }
    }
    return of_run != NULL && --of_run->left == 0 ? finish_run(g, p, run) : STORAGE_OK;
}

static enum storage_err slot_stage(struct gathering *g, unsigned p, struct slot *slot,
    struct slice page, const struct reply *value)
{
    uint32_t sum = INDEX_NONE;
    int64_t pv = reply_integer(value, -1);
    if (pv < 0 || page.n > EVENT_PAGE_MAX) {
        return proved_foreign(g->r);
    }
    if (page.n == 0 || pv == 0) { /* a page without a name is the whole site */
        return STORAGE_OK;
    }
    if (slot->run == NULL && counted_name_is_other(page, g->class)) {
        slot->other =
            (uint64_t)pv > slot->other ? (uint64_t)pv : slot->other; /* the name may come twice */
        return STORAGE_OK;
    }
    enum storage_err err =
        slot->run == NULL
            ? find_asked(g, page, &sum)
            : find_own(g, &pages_memory_sums(&g->memory, p, slot->run)->own, slot, page, &sum);
    if (err != STORAGE_OK || sum == INDEX_NONE) {
        return err;
    }
    if (!ARRAY_RESERVE(slot, staged)) {
        return STORAGE_NOMEM;
    }
    slot->staged[slot->n_staged++] = (struct staged){sum, (uint64_t)pv};
    return STORAGE_OK;
}

enum storage_err slot_take_step(
    struct gathering *g, unsigned p, struct slot *slot, const struct reply *step)
{
    enum storage_err err = STORAGE_OK;
    const struct reply *entries = reply_scan(step, slot->cursor);
    if (entries == NULL || entries->n % 2 != 0) { /* entries are a name and a number each */
        return proved_foreign(g->r);
    }
    for (size_t i = 0; err == STORAGE_OK && i < entries->n; i += 2) {
        err = slot_stage(g, p, slot, entries->items[i].text, &entries->items[i + 1]);
    }
    return err == STORAGE_OK && strcmp(slot->cursor, "0") == 0 ? slot_end(g, p, slot) : err;
}

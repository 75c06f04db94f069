#include "storage/pages/memory.h"

#include <stdlib.h>

#include "storage/pages/table.h"
#include "storage/read/run.h"

#define CACHE_SHARE 8  /* one run, of all partitions: at most this part of the cache */
#define ENTRY_LEAST 16 /* bytes of a page in a table, beside its bits */

static size_t table_max(const struct pages_memory *memory)
{
    const struct core *core = memory->w->core;
    return core->config.cache_bytes / CACHE_SHARE / core->partitions.n;
}

static void copy_table(void *data, const void *value, size_t n)
{
    buffer_append(data, value, n);
}

static void recall(struct pages_memory *memory, unsigned p, struct pages_run *run)
{
    struct window_read *w = memory->w;
    run->table = memory->tables.n;
    run->recalled = closed_recall(
        w->core->cache, &run->id, &w->known[p].view, run->proof, copy_table, &memory->tables);
    run->n_table = memory->tables.n - run->table;
    run->left = run->n;
    if (run->recalled) {
        window_recalled(w, p, run->proof);
    }
    atomic_fetch_add(run->recalled ? &w->core->stats.cache_hits : &w->core->stats.cache_misses, 1);
}

static bool find_runs(struct pages_memory *memory, unsigned p)
{
    struct window_read *w = memory->w;
    struct partition_runs *of = &memory->of[p];
    const struct cover *cover = &w->covers[p];
    struct buffer scratch;
    buffer_init(&scratch);
    struct cache_id name =
        closed_name(w->core->cache, &scratch, p, KEY_PV, w->asked->site, NULL, 0);
    bool ok = !scratch.failed;
    buffer_release(&scratch);
    for (size_t i = 0; ok && i < cover->n;) {
        const struct partition_view *view = &w->known[p].view;
        size_t end = closed_run_end(w->zone, view, cover, i, cover->n);
        if (end == i) {
            i++;
            continue;
        }
        ok = array_reserve(&of->runs, &of->capacity, of->n, sizeof(*of->runs));
        if (ok) {
            struct pages_run *run = &of->runs[of->n++];
            *run = (struct pages_run){
                .first = i, .n = end - i, .proof = closed_proof(w->zone, view, cover->buckets[i])};
            run->id = closed_run_id(w->core->cache, &name, cover, i, end - i);
            recall(memory, p, run);
        }
        i = end;
    }
    return ok;
}

bool pages_memory_begin(struct pages_memory *memory, struct window_read *w)
{
    *memory = (struct pages_memory){.w = w};
    buffer_init(&memory->tables);
    for (unsigned p = 0; p < w->core->partitions.n; p++) {
        if (window_may_recall(w, p) && !find_runs(memory, p)) {
            return false;
        }
    }
    memory->n_recalled = memory->tables.n;
    return !memory->tables.failed;
}

void pages_memory_release(struct pages_memory *memory)
{
    for (size_t p = 0; p < PARTITIONS_MAX; p++) {
        for (size_t i = 0; i < memory->of[p].n; i++) {
            page_sums_release(&memory->of[p].runs[i].own);
        }
        free(memory->of[p].runs);
    }
    buffer_release(&memory->tables);
}

struct pages_run *pages_memory_run(struct pages_memory *memory, unsigned partition, size_t i)
{
    struct partition_runs *of = &memory->of[partition];
    for (size_t r = 0; r < of->n; r++) {
        if (i >= of->runs[r].first && i - of->runs[r].first < of->runs[r].n) {
            return &of->runs[r];
        }
    }
    return NULL;
}

void pages_memory_seen(struct pages_memory *memory, unsigned partition, struct pages_run *run)
{
    const struct ver *ver = closed_ver(&memory->w->known[partition].view, run->proof);
    run->mixed = run->mixed || (run->seen && !ver_equal(&run->ver, ver));
    run->seen = true;
    run->ver = *ver;
}

bool pages_memory_has_room(const struct pages_memory *memory, struct pages_run *run)
{
    run->given_up =
        run->given_up || run->own.n > table_max(memory) / (ENTRY_LEAST + page_bits_size(run->n));
    return !run->given_up;
}

/* Does the proof that all of it came with tell of every change? */
static bool provable(const struct pages_memory *memory, unsigned p, const struct pages_run *run)
{
    const struct window_read *w = memory->w;
    const struct partition_view *view = &w->known[p].view;
    return !run->given_up && run->seen && !run->mixed &&
           ver_equal(&run->ver, closed_ver(view, run->proof)) &&
           closed_run_holds(w->zone, view, run->proof, &w->covers[p], run->first, run->n);
}

bool pages_memory_table(
    struct pages_memory *memory, unsigned partition, struct pages_run *run, struct slice *ret_table)
{
    struct buffer *tables = &memory->tables;
    if (!run->recalled) {
        tables->n = run->table = memory->n_recalled;
        for (size_t i = 0; i < run->own.n; i++) {
            const struct page_sum *sum = &run->own.all[i];
            struct page_entry entry = {sum->page, sum->pv, sum->present};
            page_table_put(tables, &entry, run->n);
        }
        run->n_table = tables->n - run->table;
        if (tables->failed) {
            return false;
        }
        page_sums_release(&run->own);
    }
    *ret_table = (struct slice){tables->n > 0 ? tables->p + run->table : "", run->n_table};
    if (!run->recalled && run->n_table <= table_max(memory) && provable(memory, partition, run)) {
        cache_put(memory->w->core->cache, &run->id, &run->ver, ret_table->p, ret_table->n);
    }
    return true;
}

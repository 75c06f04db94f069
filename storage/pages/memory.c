#include "storage/pages/memory.h"

#include <stdlib.h>

#include "storage/pages/table.h"

#define CACHE_SHARE 8  /* one run, of all partitions: at most this part of the cache */
#define ENTRY_LEAST 16 /* bytes of a page in a table, beside its bits */

static size_t memory_table_max(const struct pages_memory *memory)
{
    const struct core *core = memory->r->core;
    return core->config.cache_bytes / CACHE_SHARE / core->partitions.n;
}

static void copy_table(void *data, const void *value, size_t n)
{
    buffer_append(data, value, n);
}

static void memory_recall(struct pages_memory *memory, unsigned p, struct remembered_run *run)
{
    struct proved_read *r = memory->r;
    struct cache_id id = run_id(r->core->cache, &memory->of[p].name, &r->covers[p], run);
    run->text = memory->tables.n;
    run->recalled = proved_recall(r, p, run, &id, copy_table, &memory->tables);
    run->n_text = memory->tables.n - run->text;
}

static bool memory_find_runs(struct pages_memory *memory, unsigned p)
{
    struct proved_read *r = memory->r;
    struct partition_runs *of = &memory->of[p];
    const struct cover *cover = &r->covers[p];
    struct buffer scratch;
    buffer_init(&scratch);
    of->name = run_name(r->core->cache, &scratch, p, memory->kind, r->asked->site, NULL, 0);
    bool ok = !scratch.failed &&
              runs_find(&of->runs, r->zone, &r->known[p].view, cover, 0, cover->n, false);
    buffer_release(&scratch);
    of->sums = ok ? calloc(of->runs.n + 1, sizeof(*of->sums)) : NULL;
    for (size_t i = 0; of->sums != NULL && i < of->runs.n; i++) {
        memory_recall(memory, p, &of->runs.all[i]);
        of->sums[i].left = of->runs.all[i].n;
    }
    return of->sums != NULL;
}

bool pages_memory_begin(struct pages_memory *memory, struct proved_read *r, enum key_kind kind,
    const struct part_set *parts)
{
    *memory = (struct pages_memory){.r = r, .kind = kind};
    buffer_init(&memory->tables);
    memory->of = calloc(r->core->partitions.n, sizeof(*memory->of));
    if (memory->of == NULL) {
        return false;
    }
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        if (part_set_has(parts, p) && proved_may_recall(r, p) && !memory_find_runs(memory, p)) {
            return false;
        }
    }
    memory->n_recalled = memory->tables.n;
    return !memory->tables.failed;
}

void pages_memory_release(struct pages_memory *memory)
{
    for (size_t p = 0; memory->of != NULL && p < memory->r->core->partitions.n; p++) {
        struct partition_runs *of = &memory->of[p];
        for (size_t i = 0; of->sums != NULL && i < of->runs.n; i++) {
            page_sums_release(&of->sums[i].own);
        }
        free(of->sums);
        runs_release(&of->runs);
    }
    free(memory->of);
    buffer_release(&memory->tables);
}

struct remembered_run *pages_memory_run(
    const struct pages_memory *memory, unsigned partition, size_t i)
{
    const struct remembered_runs *runs = &memory->of[partition].runs;
    return run_at(runs->all, runs->n, i);
}

struct run_sums *pages_memory_sums(
    const struct pages_memory *memory, unsigned partition, const struct remembered_run *run)
{
    const struct partition_runs *of = &memory->of[partition];
    return &of->sums[run - of->runs.all];
}

bool pages_memory_has_room(const struct pages_memory *memory, struct run_sums *sums, size_t n)
{
    sums->given_up = sums->given_up ||
                     sums->own.n > memory_table_max(memory) / (ENTRY_LEAST + page_bits_size(n));
    return !sums->given_up;
}

/* The table of what was read of @run, behind those that were recalled.  False: no memory. */
static bool memory_make_table(
    struct pages_memory *memory, struct remembered_run *run, struct run_sums *sums)
{
    struct buffer *tables = &memory->tables;
    tables->n = run->text = memory->n_recalled;
    for (size_t i = 0; i < sums->own.n; i++) {
        const struct page_sum *sum = &sums->own.all[i];
        struct page_entry entry = {sum->page, sum->pv, sum->present};
        page_table_put(tables, &entry, run->n);
    }
    run->n_text = tables->n - run->text;
    page_sums_release(&sums->own);
    return !tables->failed;
}

bool pages_memory_table(struct pages_memory *memory, unsigned partition, struct remembered_run *run,
    struct slice *ret_table)
{
    struct proved_read *r = memory->r;
    struct run_sums *sums = pages_memory_sums(memory, partition, run);
    if (!run->recalled && !memory_make_table(memory, run, sums)) {
        return false;
    }
    const char *tables = memory->tables.n > 0 ? memory->tables.p + run->text : "";
    *ret_table = (struct slice){tables, run->n_text};
    if (!run->recalled && !sums->given_up && run->n_text <= memory_table_max(memory)) {
        const struct cover *cover = &r->covers[partition];
        struct cache_id id = run_id(r->core->cache, &memory->of[partition].name, cover, run);
        (void)proved_keep(r, partition, cover, run, &id, ret_table->p, ret_table->n);
    }
    return true;
}

#include "storage/pages/memory.h"

#include <stdlib.h>
#include <string.h>

#include "storage/job/counted_name.h"
#include "storage/pages/table.h"

#define CACHE_SHARE 8 /* the tables of one run, in all partitions: 1/8 of the cache at most */
#define NEW_SHARE   2 /* all tables of a question, in memory until its end: 1/2 of the cache */
#define MADE_KEPT   ((size_t)64 * 1024) /* bytes of a table whose memory is kept */
#define ENTRY_LEAST 16                  /* bytes that a page takes in a table, beside its bits */

/* The table of one partition may have so many bytes. */
static size_t memory_table_max(const struct pages_memory *memory)
{
    const struct core *core = memory->r->core;
    unsigned n = core->partitions.n;
    return core->config.cache_bytes / CACHE_SHARE /
           (memory->kind == KEY_VV ? visitor_partitions(n) : n);
}

struct slice pages_memory_own_name(struct slice page, size_t i, char text[static RUN_PAGE_MAX])
{
    uint32_t bucket = (uint32_t)i;
    if (counted_name_mark(page) != NAME_MARK_OTHER) {
        return page;
    }
    memcpy(text, page.p, page.n);
    memcpy(text + page.n, &bucket, sizeof(bucket));
    return (struct slice){text, page.n + sizeof(bucket)};
}

/* The page, or the name of others, whose name in a run's own sums is @name. */
static struct slice page_of(struct slice name)
{
    bool other = counted_name_mark(name) == NAME_MARK_OTHER;
    return (struct slice){name.p, other ? name.n - sizeof(uint32_t) : name.n};
}

static bool memory_find_runs(struct pages_memory *memory, unsigned p)
{
    struct proved_read *r = memory->r;
    struct partition_runs *of = &memory->of[p];
    const struct cover *cover = &r->covers[p];
    bool ok = runs_find(&of->runs, r->zone, &r->known[p].view, cover, 0, cover->n, false);
    of->sums = ok ? calloc(of->runs.n + 1, sizeof(*of->sums)) : NULL;
    ok = of->sums != NULL;
    for (size_t i = 0; ok && i < of->runs.n; i++) {
        struct remembered_run *run = &of->runs.all[i];
        of->sums[i].kept = kept_parts_recall(&memory->kept, p, cover, run);
        run->recalled = of->sums[i].kept != NULL;
        of->sums[i].left = run->recalled ? 0 : run->n;
    }
    return ok;
}

/* The name of what is remembered.  All partitions that a question reads are in one value, so a
 * question that reads a single partition has a value of its own, with that partition's name. */
static struct cache_id name_of(const struct pages_memory *memory, const struct part_set *parts)
{
    const struct proved_read *r = memory->r;
    unsigned n = 0;
    unsigned of = 0;
    struct buffer scratch;
    buffer_init(&scratch);
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        of = part_set_has(parts, p) ? (n++ == 0 ? p : RUN_OF_TABLES) : of;
    }
    struct cache_id name =
        run_name(r->core->cache, &scratch, of, memory->kind, r->asked->site, NULL, 0);
    buffer_release(&scratch);
    return name;
}

bool pages_memory_begin(struct pages_memory *memory, struct proved_read *r, enum key_kind kind,
    const struct part_set *parts)
{
    *memory = (struct pages_memory){.r = r, .kind = kind};
    buffer_init(&memory->made);
    if (r->core->cache != NULL) {
        kept_parts_begin(&memory->kept, r, name_of(memory, parts),
            r->core->config.cache_bytes / CACHE_SHARE, r->core->config.cache_bytes / NEW_SHARE);
    }
    memory->of = calloc(r->core->partitions.n, sizeof(*memory->of));
    if (memory->of == NULL) {
        return false;
    }
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        if (part_set_has(parts, p) && proved_may_recall(r, p) && !memory_find_runs(memory, p)) {
            return false;
        }
    }
    return true;
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
    kept_parts_release(&memory->kept);
    buffer_release(&memory->made);
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

/* Make the table of what was read of a run of @n buckets.  False: no memory. */
static bool memory_make_table(struct pages_memory *memory, size_t n, struct run_sums *sums)
{
    buffer_clear(&memory->made, MADE_KEPT);
    for (size_t i = 0; i < sums->own.n; i++) {
        const struct page_sum *sum = &sums->own.all[i];
        struct page_entry entry = {page_of(sum->page), sum->pv, sum->present};
        page_table_put(&memory->made, &entry, n);
    }
    page_sums_release(&sums->own);
    return !memory->made.failed;
}

bool pages_memory_table(struct pages_memory *memory, unsigned partition, struct remembered_run *run,
    struct slice *ret_table)
{
    struct run_sums *sums = pages_memory_sums(memory, partition, run);
    if (run->recalled) {
        *ret_table = kept_run_part(sums->kept, partition);
        return true;
    }
    if (!memory_make_table(memory, run->n, sums)) {
        return false;
    }
    *ret_table = (struct slice){memory->made.n > 0 ? memory->made.p : "", memory->made.n};
    if (!sums->given_up && memory->made.n <= memory_table_max(memory)) {
        (void)kept_parts_put(
            &memory->kept, partition, &memory->r->covers[partition], run, *ret_table);
    }
    return true;
}

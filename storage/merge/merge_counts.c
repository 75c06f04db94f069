#include "storage/merge/merge_counts.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/merge/merge_counts_state.h"

struct merge_counts *merge_counts_new(const struct storage_config *config, unsigned n_partitions)
{
    struct merge_counts *merge = calloc(1, sizeof(*merge));
    if (merge != NULL) {
        merge->config = config;
        merge->n_partitions = n_partitions;
    }
    return merge;
}

void merge_counts_free(struct merge_counts *merge)
{
    if (merge != NULL) {
        free(merge->buckets);
        free(merge->pages);
        free(merge->members);
        free(merge->expiries);
        free(merge->many);
        free(merge->places);
        buffer_release(&merge->fresh);
        index_release(&merge->bucket_index);
        index_release(&merge->page_index);
        free(merge);
    }
}

void merge_counts_begin(struct merge_counts *merge, const struct row *rows)
{
    merge->rows = rows;
    ARRAY_CLEAR(merge, buckets);
    ARRAY_CLEAR(merge, pages);
    ARRAY_CLEAR(merge, members);
    ARRAY_CLEAR(merge, expiries);
    ARRAY_CLEAR(merge, many);
    ARRAY_CLEAR(merge, places);
    index_clear(&merge->bucket_index);
    index_clear(&merge->page_index);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

struct bucket_wanted {
    const struct merge_counts *merge;
    enum key_kind kind;
    const struct row *row;
    struct bucket bucket;
};

static bool same_bucket(const void *context, uint32_t item)
{
    const struct bucket_wanted *wanted = context;
    const struct site_bucket *b = &wanted->merge->buckets[item];
    return b->target.bucket.start_s == wanted->bucket.start_s &&
           b->target.bucket.level == wanted->bucket.level && b->kind == wanted->kind &&
           b->site == wanted->row->site;
}

/* The number of the bucket, made if it is new; INDEX_NONE: out of memory. */
static uint32_t find_bucket(struct merge_counts *merge, enum key_kind kind, const struct row *row,
    const struct write_target *target)
{
    bool is_new;
    struct bucket_wanted wanted = {merge, kind, row, target->bucket};
    uint64_t hash = mix(row->site->hash + kind,
        (uint64_t)target->bucket.start_s * LEVELS + (uint64_t)target->bucket.level);
    uint32_t item = INDEX_ADD(merge, bucket_index, buckets, hash, same_bucket, &wanted, &is_new);
    if (is_new) {
        merge->buckets[item] = (struct site_bucket){
            .kind = kind, .site = row->site, .target = *target, .pages = CHAIN_EMPTY};
    }
    return item;
}

struct page_wanted {
    const struct merge_counts *merge;
    struct slice page;
    uint32_t bucket;
};

static bool same_page(const void *context, uint32_t item)
{
    const struct page_wanted *wanted = context;
    const struct page_count *p = &wanted->merge->pages[item];
    return p->bucket == wanted->bucket && slice_equal(p->page, wanted->page);
}

/* The number of the page in the bucket, made if it is new; INDEX_NONE: out of memory. */
static uint32_t find_page(
    struct merge_counts *merge, uint32_t bucket, struct slice page, uint64_t page_hash)
{
    bool is_new;
    struct page_wanted wanted = {merge, page, bucket};
    uint64_t hash = mix(page_hash, bucket);
    uint32_t item = INDEX_ADD(merge, page_index, pages, hash, same_page, &wanted, &is_new);
    if (is_new) {
        merge->pages[item] = (struct page_count){
            .bucket = bucket, .page = page, .members = CHAIN_EMPTY, .coarser = INDEX_NONE};
        CHAIN_APPEND(&merge->buckets[bucket].pages, merge->pages, item);
    }
    return item;
}

/* Add the row's visitor and address to the page's sketches.  Those of the row before are there
 * already.  False: out of memory. */
static bool add_member(struct merge_counts *merge, struct page_count *page, const struct row *row,
    const struct counted_for *name)
{
    const struct row *last =
        page->members.n == 0 ? NULL : &merge->rows[merge->members[page->members.last].row];
    bool visitor = name->visitors && row->has_visitor &&
                   (last == NULL || !last->has_visitor ||
                       memcmp(&last->visitor, &row->visitor, sizeof(row->visitor)) != 0);
    bool address = name->addresses && row->has_address &&
                   (last == NULL || !last->has_address ||
                       memcmp(&last->address, &row->address, sizeof(row->address)) != 0);
    if (!visitor && !address &&
        (last == NULL ||
            (last->has_visitor == row->has_visitor && last->has_address == row->has_address))) {
        return true;
    }
    if (!ARRAY_RESERVE(merge, members)) {
        return false;
    }
    uint32_t item = (uint32_t)merge->n_members++;
    merge->members[item] =
        (struct member){.row = (uint32_t)(row - merge->rows) & ((1u << ROW_BITS) - 1),
            .visitor = visitor,
            .address = address};
    CHAIN_APPEND(&page->members, merge->members, item);
    page->n_visitors += visitor;
    page->n_addresses += address;
    return true;
}

/* Find the numbers of the targets' buckets.  False: out of memory. */
static bool find_buckets(struct merge_counts *merge, enum key_kind kind, const struct row *row,
    const struct write_target *targets, unsigned n_targets, uint32_t ret[LEVELS])
{
    for (unsigned i = 0; i < n_targets; i++) {
        ret[i] = find_bucket(merge, kind, row, &targets[i]);
        if (ret[i] == INDEX_NONE) {
            return false;
        }
    }
    return true;
}

/* Add @amount to a name in each bucket, the finest bucket first.  ret[i] becomes the name's number
 * in bucket i.  False: out of memory. */
static bool add_amount(struct merge_counts *merge, const uint32_t *buckets, unsigned n_buckets,
    struct slice name, uint64_t hash, uint64_t amount, uint32_t ret[LEVELS])
{
    for (unsigned i = 0; i < n_buckets; i++) {
        ret[i] = find_page(merge, buckets[i], name, hash);
        if (ret[i] == INDEX_NONE) {
            return false;
        }
        merge->pages[ret[i]].count += amount;
        if (i > 0) {
            merge->pages[ret[i - 1]].coarser = ret[i];
        }
    }
    return true;
}

bool merge_counts_add(struct merge_counts *merge, enum key_kind kind, const struct row *row,
    const struct counted_for *names, size_t n, const struct write_target *targets,
    unsigned n_targets)
{
    uint32_t buckets[LEVELS];
    uint32_t pages[LEVELS];
    bool ok = find_buckets(merge, kind, row, targets, n_targets, buckets);
    for (size_t k = 0; ok && k < n; k++) {
        const struct counted_for *name = &names[k];
        bool sketched = kind == KEY_PV && (name->visitors || name->addresses);
        ok = add_amount(merge, buckets, n_targets, name->name, name->hash, 1, pages);
        for (unsigned i = 0; ok && sketched && i < n_targets; i++) {
            ok = add_member(merge, &merge->pages[pages[i]], row, name);
        }
    }
    return ok;
}

bool merge_counts_add_sum(struct merge_counts *merge, const struct row *row,
    const struct merge_sum *sum, const struct write_target *targets, unsigned n_targets)
{
    uint32_t buckets[LEVELS];
    uint32_t pages[LEVELS];
    uint64_t hash = row->site->hash + (uint8_t)sum->name.p[sum->name.n - 1];
    return find_buckets(merge, KEY_VV, row, targets, n_targets, buckets) &&
           add_amount(merge, buckets, n_targets, sum->name, hash, sum->amount, pages);
}

void merge_counts_targets(const struct merge_counts *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        visit(data, merge->buckets[i].site->name, &merge->buckets[i].target);
    }
}

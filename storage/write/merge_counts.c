#include "storage/write/merge_counts.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* A bucket of a site, with its pages as a list. */
struct site_bucket {
    struct slice site;
    uint64_t site_hash;
    struct write_target target;
    uint32_t first_page, last_page, n_pages;
};

/* A page in a bucket, with its rows as a list. */
struct page_count {
    uint32_t bucket;
    struct slice page;
    uint32_t views, n_visitors, n_addresses;
    uint32_t first_member, last_member;
    uint32_t next; /* page of the same bucket */
};

struct member {
    const struct row *row;
    bool visitor, address; /* to be written */
    uint32_t next;
};

struct merge_counts {
    struct site_bucket *buckets;
    struct page_count *pages;
    struct member *members;
    size_t n_buckets, n_pages, n_members;
    size_t buckets_capacity, pages_capacity, members_capacity;
    struct index bucket_index, page_index;
};

struct merge_counts *merge_counts_new(void)
{
    return calloc(1, sizeof(struct merge_counts));
}

void merge_counts_free(struct merge_counts *merge)
{
    if (merge != NULL) {
        free(merge->buckets);
        free(merge->pages);
        free(merge->members);
        index_release(&merge->bucket_index);
        index_release(&merge->page_index);
        free(merge);
    }
}

void merge_counts_clear(struct merge_counts *merge)
{
    merge->n_buckets = merge->n_pages = merge->n_members = 0;
    index_clear(&merge->bucket_index);
    index_clear(&merge->page_index);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

struct bucket_wanted {
    const struct merge_counts *merge;
    const struct row *row;
    struct bucket bucket;
};

static bool same_bucket(const void *context, uint32_t item)
{
    const struct bucket_wanted *wanted = context;
    const struct site_bucket *b = &wanted->merge->buckets[item];
    return b->target.bucket.start_s == wanted->bucket.start_s &&
           b->target.bucket.level == wanted->bucket.level &&
           slice_equal(b->site, wanted->row->site);
}

/* The number of the bucket, made if it is new; INDEX_NONE: out of memory. */
static uint32_t find_bucket(
    struct merge_counts *merge, const struct row *row, const struct write_target *target)
{
    if (!index_reserve(&merge->bucket_index) ||
        !array_reserve(
            &merge->buckets, &merge->buckets_capacity, merge->n_buckets, sizeof(*merge->buckets))) {
        return INDEX_NONE;
    }
    struct bucket_wanted wanted = {merge, row, target->bucket};
    uint64_t hash = mix(
        row->site_hash, (uint64_t)target->bucket.start_s * LEVELS + (uint64_t)target->bucket.level);
    struct index_slot *slot = index_find(&merge->bucket_index, hash, same_bucket, &wanted);
    if (slot->item == INDEX_NONE) {
        uint32_t item = (uint32_t)merge->n_buckets++;
        merge->buckets[item] = (struct site_bucket){.site = row->site,
            .site_hash = row->site_hash,
            .target = *target,
            .first_page = INDEX_NONE,
            .last_page = INDEX_NONE};
        index_set(&merge->bucket_index, slot, hash, item);
    }
    return slot->item;
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

static struct page_count *find_page(
    struct merge_counts *merge, uint32_t bucket, struct slice page, uint64_t page_hash)
{
    if (!index_reserve(&merge->page_index) || !array_reserve(&merge->pages, &merge->pages_capacity,
                                                  merge->n_pages, sizeof(*merge->pages))) {
        return NULL;
    }
    struct page_wanted wanted = {merge, page, bucket};
    uint64_t hash = mix(page_hash, bucket);
    struct index_slot *slot = index_find(&merge->page_index, hash, same_page, &wanted);
    if (slot->item != INDEX_NONE) {
        return &merge->pages[slot->item];
    }
    uint32_t item = (uint32_t)merge->n_pages++;
    merge->pages[item] = (struct page_count){.bucket = bucket,
        .page = page,
        .first_member = INDEX_NONE,
        .last_member = INDEX_NONE,
        .next = INDEX_NONE};
    index_set(&merge->page_index, slot, hash, item);
    struct site_bucket *b = &merge->buckets[bucket];
    if (b->last_page == INDEX_NONE) {
        b->first_page = item;
    } else {
        merge->pages[b->last_page].next = item;
    }
    b->last_page = item;
    b->n_pages++;
    return &merge->pages[item];
}

/* Who comes again at once, on the same page, is in the sketches already. */
static bool add_member(struct merge_counts *merge, struct page_count *page, const struct row *row)
{
    const struct row *last =
        page->last_member == INDEX_NONE ? NULL : merge->members[page->last_member].row;
    bool visitor =
        row->has_visitor && (last == NULL || !last->has_visitor ||
                                memcmp(&last->visitor, &row->visitor, sizeof(row->visitor)) != 0);
    bool address =
        row->has_address && (last == NULL || !last->has_address ||
                                memcmp(&last->address, &row->address, sizeof(row->address)) != 0);
    if (last != NULL && !visitor && !address && last->has_visitor == row->has_visitor &&
        last->has_address == row->has_address) {
        return true;
    }
    if (!array_reserve(
            &merge->members, &merge->members_capacity, merge->n_members, sizeof(*merge->members))) {
        return false;
    }
    uint32_t item = (uint32_t)merge->n_members++;
    merge->members[item] = (struct member){row, visitor, address, INDEX_NONE};
    if (page->last_member == INDEX_NONE) {
        page->first_member = item;
    } else {
        merge->members[page->last_member].next = item;
    }
    page->last_member = item;
    page->n_visitors += visitor;
    page->n_addresses += address;
    return true;
}

bool merge_counts_add(struct merge_counts *merge, const struct row *row, bool whole_site,
    const struct write_target *targets, unsigned n_targets)
{
    struct slice page = whole_site ? (struct slice){NULL, 0} : row->page;
    uint64_t hash = whole_site ? row->site_hash : row->page_hash;
    for (unsigned i = 0; i < n_targets; i++) {
        uint32_t bucket = find_bucket(merge, row, &targets[i]);
        struct page_count *count =
            bucket == INDEX_NONE ? NULL : find_page(merge, bucket, page, hash);
        if (count == NULL || !add_member(merge, count, row)) {
            return false;
        }
        count->views++;
    }
    return true;
}

static void write_key(struct buffer *keys, size_t *n_keys, const char *tag, enum key_kind kind,
    const struct site_bucket *bucket, struct slice page)
{
    struct key key;
    key_bucket(&key, tag, kind, bucket->site, bucket->target.bucket, page);
    resp_word(keys, key.p, key.n);
    (*n_keys)++;
}

static void write_sketches(const struct merge_counts *merge, const struct page_count *page,
    const char *tag, struct buffer *keys, size_t *n_keys, struct buffer *args)
{
    const struct site_bucket *bucket = &merge->buckets[page->bucket];
    resp_decimal(args, page->n_visitors);
    for (uint32_t m = page->first_member; m != INDEX_NONE; m = merge->members[m].next) {
        if (merge->members[m].visitor) {
            resp_word(args, merge->members[m].row->visitor.bytes, 8);
        }
    }
    resp_decimal(args, page->n_addresses);
    for (uint32_t m = page->first_member; m != INDEX_NONE; m = merge->members[m].next) {
        if (merge->members[m].address) {
            const struct address_id *address = &merge->members[m].row->address;
            resp_word(args, address->bytes, sizeof(address->bytes));
        }
    }
    if (page->n_visitors > 0) {
        write_key(keys, n_keys, tag, KEY_UV, bucket, page->page);
    }
    if (page->n_addresses > 0) {
        write_key(keys, n_keys, tag, KEY_IP, bucket, page->page);
    }
}

static void write_bucket(const struct merge_counts *merge, const struct site_bucket *bucket,
    const char *tag, struct buffer *keys, size_t *n_keys, struct buffer *args, size_t *n_args)
{
    resp_text(args, bucket->target.bucket.level == LEVEL_MINUTE ? "H" : "Z");
    resp_decimal(args, bucket->target.expire_ms);
    resp_decimal(args, bucket->n_pages);
    write_key(keys, n_keys, tag, KEY_PV, bucket, (struct slice){NULL, 0});
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        resp_word(args, merge->pages[p].page.p, merge->pages[p].page.n);
    }
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        resp_decimal(args, merge->pages[p].views);
    }
    *n_args += 3;
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        const struct page_count *page = &merge->pages[p];
        write_sketches(merge, page, tag, keys, n_keys, args);
        *n_args += 4 + page->n_visitors + page->n_addresses;
    }
}

void merge_counts_write(const struct merge_counts *merge, const char *tag, struct buffer *keys,
    size_t *n_keys, struct buffer *args, size_t *n_args)
{
    resp_decimal(args, (int64_t)merge->n_buckets);
    *n_args += 1;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        write_bucket(merge, &merge->buckets[i], tag, keys, n_keys, args, n_args);
    }
}

void merge_counts_targets(const struct merge_counts *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        visit(data, merge->buckets[i].site, &merge->buckets[i].target);
    }
}

#include "storage/merge/merge_counts.h"

#include <stdlib.h>
#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define ELEMENTS_AT_ONCE 4000 /* in a command: fold.lua cannot take more than 8,000 words */
#define SKETCH_ELEMENT   8    /* bytes */
#define LEARN_MOST       4096 /* elements of a sketch at a time */
#define RECENT_S         600  /* minutes that began so long ago are kept, whatever the settings */

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
    uint64_t count;
    uint32_t n_visitors, n_addresses;
    uint32_t first_member, last_member;
    uint32_t next; /* page of the same bucket */
};

struct member {
    const struct row *row;
    bool visitor, address; /* to be written */
    uint32_t next;
};

/* A sketch that many elements came for, and where those go that are added. */
struct many_elements {
    uint64_t key_hash;
    uint32_t n; /* that came */
    size_t first_place, end_place;
};

struct merge_counts {
    enum key_kind kind; /* KEY_PV or KEY_VV */
    struct site_bucket *buckets;
    struct page_count *pages;
    struct member *members;
    size_t n_buckets, n_pages, n_members;
    size_t buckets_capacity, pages_capacity, members_capacity;
    struct index bucket_index, page_index;
    uint64_t *expiries; /* hashes of the keys that were given one */
    size_t n_expiries, expiries_capacity;
    struct many_elements *many;
    struct hll_place *places;
    size_t n_many, n_places;
    size_t many_capacity, places_capacity;
    int64_t now_ms; /* of the commands */
};

struct merge_counts *merge_counts_new(enum key_kind kind)
{
    struct merge_counts *merge = calloc(1, sizeof(*merge));
    if (merge != NULL) {
        merge->kind = kind;
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
        index_release(&merge->bucket_index);
        index_release(&merge->page_index);
        free(merge);
    }
}

void merge_counts_clear(struct merge_counts *merge)
{
    array_relax(
        &merge->buckets, &merge->buckets_capacity, merge->n_buckets, sizeof(*merge->buckets));
    array_relax(&merge->pages, &merge->pages_capacity, merge->n_pages, sizeof(*merge->pages));
    array_relax(
        &merge->members, &merge->members_capacity, merge->n_members, sizeof(*merge->members));
    array_relax(
        &merge->expiries, &merge->expiries_capacity, merge->n_expiries, sizeof(*merge->expiries));
    array_relax(&merge->many, &merge->many_capacity, merge->n_many, sizeof(*merge->many));
    array_relax(&merge->places, &merge->places_capacity, merge->n_places, sizeof(*merge->places));
    merge->n_buckets = merge->n_pages = merge->n_members = 0;
    merge->n_expiries = merge->n_many = merge->n_places = 0;
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
static bool add_member(struct merge_counts *merge, struct page_count *page, const struct row *row,
    const struct counted_for *name)
{
    const struct row *last =
        page->last_member == INDEX_NONE ? NULL : merge->members[page->last_member].row;
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

bool merge_counts_add(struct merge_counts *merge, const struct row *row,
    const struct counted_for *names, size_t n, const struct write_target *targets,
    unsigned n_targets)
{
    for (unsigned i = 0; i < n_targets; i++) {
        uint32_t bucket = find_bucket(merge, row, &targets[i]);
        for (size_t k = 0; k < n; k++) {
            const struct counted_for *name = &names[k];
            struct page_count *count =
                bucket == INDEX_NONE ? NULL : find_page(merge, bucket, name->name, name->hash);
            bool sketched = merge->kind == KEY_PV && (name->visitors || name->addresses);
            if (count == NULL || (sketched && !add_member(merge, count, row, name))) {
                return false;
            }
            count->count++;
        }
    }
    return true;
}

bool merge_counts_add_sum(struct merge_counts *merge, const struct row *row,
    const struct merge_sum *sum, const struct write_target *targets, unsigned n_targets)
{
    for (unsigned i = 0; i < n_targets; i++) {
        uint32_t bucket = find_bucket(merge, row, &targets[i]);
        uint64_t hash = row->site_hash + (uint8_t)sum->name.p[sum->name.n - 1];
        struct page_count *count =
            bucket == INDEX_NONE ? NULL : find_page(merge, bucket, sum->name, hash);
        if (count == NULL) {
            return false;
        }
        count->count += sum->amount;
    }
    return true;
}

/* A bucket as it is written. */
struct bucket_writer {
    struct merge_counts *merge;
    const struct site_bucket *bucket;
    const char *tag;
    const struct known_keys *known;
    uint64_t state_hash;
    struct buffer *out;
    size_t n; /* commands */
};

/* Have @key expire with its bucket.  One that has an expiry keeps it: see retention_keep_s(). */
static void write_expiry(struct bucket_writer *w, const struct key *key)
{
    struct merge_counts *merge = w->merge;
    int64_t expire_ms = w->bucket->target.expire_ms;
    if (expire_ms > 0) {
        uint64_t hash = XXH3_64bits_withSeed(key->p, key->n, w->state_hash);
        if (known_hashes_has(w->known->expiries, hash)) {
            return;
        }
        if (array_reserve(&merge->expiries, &merge->expiries_capacity, merge->n_expiries,
                sizeof(*merge->expiries))) { /* else it is set again */
            merge->expiries[merge->n_expiries++] = hash;
        }
        resp_head(w->out, 4);
        resp_text(w->out, "PEXPIREAT");
        resp_word(w->out, key->p, key->n);
        resp_decimal(w->out, expire_ms);
        resp_text(w->out, "NX");
        w->n++;
    }
}

static void write_counter(
    struct bucket_writer *w, const struct key *key, struct slice page, uint64_t count)
{
    bool minute = w->bucket->target.bucket.level == LEVEL_MINUTE;
    resp_head(w->out, 4);
    resp_text(w->out, minute ? "HINCRBY" : "ZINCRBY");
    resp_word(w->out, key->p, key->n);
    if (minute) {
        resp_word(w->out, page.p, page.n);
        resp_decimal(w->out, (int64_t)count);
    } else {
        resp_decimal(w->out, (int64_t)count);
        resp_word(w->out, page.p, page.n);
    }
    w->n++;
}

/* ---- sketches ---- */

/* The member's element for sketches of @kind; NULL: none that is to be written. */
static const uint8_t *element_of(const struct member *member, enum key_kind kind)
{
    if (kind == KEY_UV) {
        return member->visitor ? member->row->visitor.bytes : NULL;
    }
    return member->address ? member->row->address.bytes : NULL;
}

/* Leave out the elements that the sketch is @known to hold, NULL: none, and note where the others
 * go.  Returns how many these are. */
static uint32_t drop_known(struct merge_counts *merge, const struct page_count *page,
    enum key_kind kind, const struct hll *known)
{
    uint32_t n = 0;
    size_t most = merge->n_places + LEARN_MOST;
    for (uint32_t m = page->first_member; m != INDEX_NONE; m = merge->members[m].next) {
        struct member *member = &merge->members[m];
        const uint8_t *element = element_of(member, kind);
        if (element == NULL) {
            continue;
        }
        struct hll_place place = hll_place_of(element, SKETCH_ELEMENT);
        if (known != NULL && place.count <= known->registers[place.index]) {
            *(kind == KEY_UV ? &member->visitor : &member->address) = false;
            continue;
        }
        n++;
        if (merge->n_places < most && array_reserve(&merge->places, &merge->places_capacity,
                                          merge->n_places, sizeof(*merge->places))) {
            merge->places[merge->n_places++] = place;
        }
    }
    return n;
}

/* The same by what is known of the sketch at @key: @n elements came for it. */
static uint32_t drop_elements(struct bucket_writer *w, const struct page_count *page,
    enum key_kind kind, uint32_t n, const struct key *key)
{
    struct merge_counts *merge = w->merge;
    struct bucket bucket = w->bucket->target.bucket;
    if (bucket.level != LEVEL_MINUTE || bucket.start_s < merge->now_ms / 1000 - RECENT_S) {
        return n;
    }
    uint64_t hash = XXH3_64bits(key->p, key->n);
    const struct hll *known = known_sketches_find(w->known->sketches, hash);
    if ((n < KNOWN_SKETCHES_FEW && known == NULL) ||
        !array_reserve(&merge->many, &merge->many_capacity, merge->n_many, sizeof(*merge->many))) {
        return n;
    }
    struct many_elements *many = &merge->many[merge->n_many++];
    *many = (struct many_elements){.key_hash = hash, .n = n, .first_place = merge->n_places};
    n = drop_known(merge, page, kind, known);
    many->end_place = merge->n_places;
    return n;
}

/* The next element of a sketch of @kind from member *m on, which moves behind it. */
static const uint8_t *next_element(
    const struct merge_counts *merge, enum key_kind kind, uint32_t *m)
{
    for (;;) {
        const struct member *member = &merge->members[*m];
        const uint8_t *element = element_of(member, kind);
        *m = member->next;
        if (element != NULL) {
            return element;
        }
    }
}

/* Add the visitors, or the addresses, of @page to its sketch: *@members of them. */
static void write_sketch(
    struct bucket_writer *w, const struct page_count *page, enum key_kind kind, uint32_t *members)
{
    struct key key;
    uint32_t m = page->first_member;
    if (*members == 0) {
        return;
    }
    key_bucket(&key, w->tag, kind, w->bucket->site, w->bucket->target.bucket, page->page);
    *members = drop_elements(w, page, kind, *members, &key);
    if (*members == 0) {
        return; /* and the key has its expiry */
    }
    for (uint32_t n = *members; n > 0;) {
        uint32_t now = n < ELEMENTS_AT_ONCE ? n : ELEMENTS_AT_ONCE;
        n -= now;
        resp_head(w->out, 2 + now);
        resp_text(w->out, "PFADD");
        resp_word(w->out, key.p, key.n);
        for (; now > 0; now--) {
            resp_word(w->out, next_element(w->merge, kind, &m), SKETCH_ELEMENT);
        }
        w->n++;
    }
    write_expiry(w, &key);
}

static size_t write_bucket(struct bucket_writer *w)
{
    const struct merge_counts *merge = w->merge;
    const struct site_bucket *bucket = w->bucket;
    struct key key;
    w->n = 0;
    key_bucket(
        &key, w->tag, merge->kind, bucket->site, bucket->target.bucket, (struct slice){NULL, 0});
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        write_counter(w, &key, merge->pages[p].page, merge->pages[p].count);
    }
    write_expiry(w, &key);
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        struct page_count *page = &merge->pages[p];
        write_sketch(w, page, KEY_UV, &page->n_visitors);
        write_sketch(w, page, KEY_IP, &page->n_addresses);
    }
    return w->n;
}

size_t merge_counts_write(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct known_keys *known, struct slice state, struct buffer *out)
{
    size_t n = 0;
    uint64_t state_hash = XXH3_64bits(state.p, state.n);
    merge->n_expiries = merge->n_many = merge->n_places = 0;
    merge->now_ms = now_ms;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        int64_t expire_ms = merge->buckets[i].target.expire_ms;
        if (expire_ms == 0 || now_ms < expire_ms) { /* else PEXPIREAT would delete it at once */
            struct bucket_writer w = {merge, &merge->buckets[i], tag, known, state_hash, out, 0};
            n += write_bucket(&w);
        }
    }
    return n;
}

void merge_counts_learn(const struct merge_counts *merge, struct known_hashes *known)
{
    for (size_t i = 0; i < merge->n_expiries; i++) {
        known_hashes_add(known, merge->expiries[i]);
    }
}

void merge_counts_learn_elements(const struct merge_counts *merge, struct known_sketches *known)
{
    for (size_t i = 0; i < merge->n_many; i++) {
        const struct many_elements *many = &merge->many[i];
        struct hll *hll = known_sketches_take(known, many->key_hash, many->n, merge->now_ms);
        for (size_t p = many->first_place; hll != NULL && p < many->end_place; p++) {
            struct hll_place place = merge->places[p];
            uint8_t *is = &hll->registers[place.index];
            *is = place.count > *is ? place.count : *is;
        }
    }
}

void merge_counts_targets(const struct merge_counts *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        visit(data, merge->buckets[i].site, &merge->buckets[i].target);
    }
}

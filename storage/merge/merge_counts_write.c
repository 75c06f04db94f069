#include "storage/merge/merge_counts.h"

#include <stdlib.h>
#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/merge/merge_counts_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define ELEMENTS_AT_ONCE 4000 /* in a command: fold.lua cannot take more than 8,000 words */
#define SKETCH_ELEMENT   8    /* bytes */
#define LEARN_MOST       4096 /* elements of a sketch at a time */
#define VALUES_AT_ONCE   2000 /* fields and values of an HSET, for the same reason */
#define RECENT_S         600  /* minutes that began so long ago are kept, whatever the settings */

/* A bucket as it is written. */
struct bucket_writer {
    struct merge_counts *merge;
    struct site_bucket *bucket;
    const char *tag;
    const struct known_keys *known;
    uint64_t state_hash;
    struct buffer *out;
    size_t n; /* commands of all buckets so far */
};

/* A minute whose keys cannot have expired, and whose counters are remembered. */
static bool is_recent(const struct merge_counts *merge, struct bucket bucket)
{
    return bucket.level == LEVEL_MINUTE && bucket.start_s >= merge->now_ms / 1000 - RECENT_S;
}

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

/* What the counters have that are known; returns how many these are. */
static size_t find_values(struct bucket_writer *w, const struct key *key)
{
    struct known_bucket known;
    size_t n = 0;
    w->bucket->tells = w->known->counts != NULL && is_recent(w->merge, w->bucket->target.bucket);
    if (!w->bucket->tells) {
        return 0;
    }
    known_bucket_init(&known, w->known->counts, w->known->partition, key->p, key->n);
    for (uint32_t p = w->bucket->first_page; p != INDEX_NONE; p = w->merge->pages[p].next) {
        struct page_count *page = &w->merge->pages[p];
        uint64_t value = known_bucket_find(&known, page->page);
        page->value = value == 0 ? 0 : value + page->count;
        n += value != 0;
    }
    return n;
}

/* The counters that are known get their new values. */
static void write_values(struct bucket_writer *w, const struct key *key)
{
    size_t n = find_values(w, key);
    size_t left = 0; /* of the command at hand */
    for (uint32_t p = w->bucket->first_page; n > 0; p = w->merge->pages[p].next) {
        const struct page_count *page = &w->merge->pages[p];
        if (page->value == 0) {
            continue;
        }
        if (left == 0) {
            left = n < VALUES_AT_ONCE ? n : VALUES_AT_ONCE;
            resp_head(w->out, 2 + 2 * left);
            resp_text(w->out, "HSET");
            resp_word(w->out, key->p, key->n);
            w->n++;
        }
        resp_word(w->out, page->page.p, page->page.n);
        resp_decimal(w->out, (int64_t)page->value);
        left--;
        n--;
    }
}

static void write_counters(struct bucket_writer *w, const struct key *key)
{
    write_values(w, key);
    for (uint32_t p = w->bucket->first_page; p != INDEX_NONE; p = w->merge->pages[p].next) {
        struct page_count *page = &w->merge->pages[p];
        if (page->value == 0) {
            page->command = (uint32_t)w->n;
            write_counter(w, key, page->page, page->count);
        }
    }
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
    if (!is_recent(merge, w->bucket->target.bucket)) {
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

/* The key of a bucket's counters. */
static void counters_key(struct key *key, const char *tag, const struct merge_counts *merge,
    const struct site_bucket *bucket)
{
    key_bucket(key, tag, merge->kind, bucket->site, bucket->target.bucket, (struct slice){NULL, 0});
}

static void write_bucket(struct bucket_writer *w)
{
    const struct merge_counts *merge = w->merge;
    struct key key;
    counters_key(&key, w->tag, merge, w->bucket);
    write_counters(w, &key);
    write_expiry(w, &key);
    for (uint32_t p = w->bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        struct page_count *page = &merge->pages[p];
        write_sketch(w, page, KEY_UV, &page->n_visitors);
        write_sketch(w, page, KEY_IP, &page->n_addresses);
    }
}

size_t merge_counts_write(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct known_keys *known, struct slice state, struct buffer *out)
{
    struct bucket_writer w = {.merge = merge,
        .tag = tag,
        .known = known,
        .state_hash = XXH3_64bits(state.p, state.n),
        .out = out};
    merge->n_expiries = merge->n_many = merge->n_places = 0;
    merge->now_ms = now_ms;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        int64_t expire_ms = merge->buckets[i].target.expire_ms;
        if (expire_ms == 0 || now_ms < expire_ms) { /* else PEXPIREAT would delete it at once */
            w.bucket = &merge->buckets[i];
            write_bucket(&w);
        }
    }
    return w.n;
}

void merge_counts_learn_values(const struct merge_counts *merge, const char *tag,
    const struct known_keys *known, const struct reply *replies)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        const struct site_bucket *bucket = &merge->buckets[i];
        struct known_bucket is;
        struct key key;
        if (!bucket->tells) {
            continue;
        }
        counters_key(&key, tag, merge, bucket);
        known_bucket_init(&is, known->counts, known->partition, key.p, key.n);
        for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
            const struct page_count *page = &merge->pages[p];
            int64_t value =
                page->value != 0 ? (int64_t)page->value : reply_integer(&replies[page->command], 0);
            known_bucket_set(&is, page->page, value > 0 ? (uint64_t)value : 0);
        }
    }
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

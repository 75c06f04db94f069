/* merge_counts_write.c - the commands that count page views and visits, and set expiries. */
#include "storage/merge/merge_counts.h"

#include <stdlib.h>
#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/merge/merge_writer.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* A key may expire before the commands are carried out, and they would make it anew, without an
 * expiry.  So a known expiry is set again if it is no farther away than the commands may wait. */
#define EXPIRES_SOON_MS 60000

#define VALUES_AT_ONCE 2000 /* values of one command: fold.lua takes at most 8,000 words of it */

bool merge_note_expiry(struct bucket_writer *w, const struct key *key)
{
    struct merge_counts *merge = w->merge;
    uint64_t hash = XXH3_64bits_withSeed(key->p, key->n, w->state_hash);
    bool ends_soon = w->bucket->target.expire_ms - merge->now_ms < EXPIRES_SOON_MS;
    if (!ends_soon && known_hashes_has(w->known->expiries, hash)) {
        return false;
    }
    if (ARRAY_RESERVE(merge, expiries)) { /* without memory the expiry is set again */
        merge->expiries[merge->n_expiries++] = hash;
    }
    return true;
}

void merge_write_expiry(struct bucket_writer *w, const struct key *key)
{
    int64_t expire_ms = w->bucket->target.expire_ms;
    if (expire_ms > 0 && merge_note_expiry(w, key)) {
        resp_begin(w->out, "PEXPIREAT", (struct slice){key->p, key->n}, 2);
        resp_decimal(w->out, expire_ms);
        resp_text(w->out, "NX");
        w->n++;
    }
}

/* Append a field of a minute's hash and its value, or a score of a coarser bucket and its member.
 */
static void write_value(struct buffer *out, bool minute, struct slice page, uint64_t value)
{
    if (minute) {
        resp_slice(out, page);
        resp_decimal(out, (int64_t)value);
    } else {
        resp_decimal(out, (int64_t)value);
        resp_slice(out, page);
    }
}

static void write_counter(
    struct bucket_writer *w, const struct key *key, struct slice page, uint64_t count)
{
    bool minute = w->bucket->target.bucket.level == LEVEL_MINUTE;
    resp_begin(w->out, minute ? "HINCRBY" : "ZINCRBY", (struct slice){key->p, key->n}, 2);
    write_value(w->out, minute, page, count);
    w->n++;
}

/* Find the values of the counters that are known.  Returns how many these are. */
static size_t find_values(struct bucket_writer *w, const struct key *key)
{
    struct known_bucket known;
    size_t n = 0;
    if (w->bucket->is_told) {
        return w->bucket->pages.n;
    }
    w->bucket->learns =
        w->known->counts != NULL && merge_is_recent(w->merge, w->bucket->target.bucket);
    if (!w->bucket->learns) {
        return 0;
    }
    known_bucket_init(&known, w->known->counts, w->known->partition, key->p, key->n);
    for (uint32_t p = w->bucket->pages.first; p != INDEX_NONE; p = w->merge->pages[p].next) {
        struct page_count *page = &w->merge->pages[p];
        uint64_t value = known_bucket_find(&known, page->page);
        page->value = value == 0 ? 0 : value + page->count;
        n += value != 0;
    }
    return n;
}

/* Give the counters that are known their new values. */
static void write_values(struct bucket_writer *w, const struct key *key)
{
    bool minute = w->bucket->target.bucket.level == LEVEL_MINUTE;
    size_t n = find_values(w, key);
    size_t left = 0; /* values that the command at hand still gets */
    for (uint32_t p = w->bucket->pages.first; n > 0; p = w->merge->pages[p].next) {
        const struct page_count *page = &w->merge->pages[p];
        if (page->value == 0) {
            continue;
        }
        if (left == 0) {
            left = n < VALUES_AT_ONCE ? n : VALUES_AT_ONCE;
            resp_begin(w->out, minute ? "HSET" : "ZADD", (struct slice){key->p, key->n}, 2 * left);
            w->n++;
        }
        write_value(w->out, minute, page->page, page->value);
        left--;
        n--;
    }
}

static void write_counters(struct bucket_writer *w, const struct key *key)
{
    write_values(w, key);
    for (uint32_t p = w->bucket->pages.first; p != INDEX_NONE; p = w->merge->pages[p].next) {
        struct page_count *page = &w->merge->pages[p];
        if (page->value == 0) {
            page->command = (uint32_t)w->n;
            write_counter(w, key, page->page, page->count);
        }
    }
}

static void write_bucket(struct bucket_writer *w)
{
    struct key key;
    merge_counters_key(&key, w->tag, w->bucket);
    write_counters(w, &key);
    merge_write_expiry(w, &key);
    merge_write_sketches(w);
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
        w.bucket = &merge->buckets[i];
        if (!merge_is_over(merge, w.bucket)) {
            write_bucket(&w);
        }
    }
    merge_write_fresh(&w);
    return w.n;
}

void merge_counts_learn_values(const struct merge_counts *merge, const char *tag,
    const struct known_keys *known, const struct reply *replies)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        const struct site_bucket *bucket = &merge->buckets[i];
        struct known_bucket known_bucket;
        struct key key;
        if (!bucket->learns) {
            continue;
        }
        merge_counters_key(&key, tag, bucket);
        known_bucket_init(&known_bucket, known->counts, known->partition, key.p, key.n);
        for (uint32_t p = bucket->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
            const struct page_count *page = &merge->pages[p];
            int64_t value =
                page->value != 0 ? (int64_t)page->value : reply_integer(&replies[page->command], 0);
            known_bucket_set(&known_bucket, page->page, value > 0 ? (uint64_t)value : 0);
        }
    }
}

void merge_counts_learn(const struct merge_counts *merge, struct known_hashes *known)
{
    for (size_t i = 0; i < merge->n_expiries; i++) {
        known_hashes_add(known, merge->expiries[i]);
    }
}

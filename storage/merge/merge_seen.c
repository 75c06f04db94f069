#include "storage/merge/merge_seen.h"

#include <stdlib.h>

#include "storage/base/chain.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* The pairs of a site that arrived in a month: what is appended to one log. */
struct site_pairs {
    const struct row_site *site;
    struct bucket month;
    struct chain pairs;
};

struct pair {
    uint64_t fingerprint;
    uint32_t next;
};

struct merge_seen {
    struct site_pairs *sites;
    struct pair *pairs;
    size_t n_sites, n_pairs;
    size_t sites_capacity, pairs_capacity;
    struct bucket month; /* the month in which the last pair arrived */
};

struct merge_seen *merge_seen_new(void)
{
    return calloc(1, sizeof(struct merge_seen));
}

void merge_seen_free(struct merge_seen *merge)
{
    if (merge != NULL) {
        free(merge->sites);
        free(merge->pairs);
        free(merge);
    }
}

void merge_seen_clear(struct merge_seen *merge)
{
    ARRAY_CLEAR(merge, sites);
    ARRAY_CLEAR(merge, pairs);
}

/* The pairs of the row's site in @month, added if there are none.  Sites are few, so they are
 * searched one by one, the last one first.  NULL: out of memory. */
static struct site_pairs *find_site(
    struct merge_seen *merge, const struct row *row, struct bucket month)
{
    for (size_t i = merge->n_sites; i-- > 0;) {
        struct site_pairs *site = &merge->sites[i];
        if (site->site == row->site && site->month.start_s == month.start_s) {
            return site;
        }
    }
    if (!ARRAY_RESERVE(merge, sites)) {
        return NULL;
    }
    struct site_pairs *site = &merge->sites[merge->n_sites++];
    *site = (struct site_pairs){.site = row->site, .month = month, .pairs = CHAIN_EMPTY};
    return site;
}

bool merge_seen_add(struct merge_seen *merge, const struct row *row, int64_t arrival_s)
{
    if (arrival_s < merge->month.start_s || arrival_s >= merge->month.end_s) {
        merge->month = bucket_at(zone_utc(), LEVEL_MONTH, arrival_s);
    }
    struct site_pairs *site = find_site(merge, row, merge->month);
    uint64_t fingerprint = seen_fingerprint(&row->user_id, row->page_hash);
    if (site != NULL && site->pairs.n > 0 &&
        merge->pairs[site->pairs.last].fingerprint == fingerprint) {
        return true; /* the user has loaded the page again */
    }
    if (site == NULL || !ARRAY_RESERVE(merge, pairs)) {
        return false;
    }
    uint32_t item = (uint32_t)merge->n_pairs++;
    merge->pairs[item] = (struct pair){.fingerprint = fingerprint};
    CHAIN_APPEND(&site->pairs, merge->pairs, item);
    return true;
}

static void write_append(const struct merge_seen *merge, const struct site_pairs *site,
    struct slice key, struct buffer *out)
{
    size_t n = site->pairs.n * sizeof(merge->pairs[0].fingerprint);
    resp_begin(out, "APPEND", key, 1);
    buffer_text(out, "$");
    buffer_decimal(out, (int64_t)n);
    buffer_text(out, "\r\n");
    char *bytes = buffer_grow(out, n);
    for (uint32_t p = site->pairs.first; bytes != NULL && p != INDEX_NONE;
         p = merge->pairs[p].next) {
        memcpy(bytes, &merge->pairs[p].fingerprint, sizeof(merge->pairs[p].fingerprint));
        bytes += sizeof(merge->pairs[p].fingerprint);
    }
    buffer_text(out, "\r\n");
}

static struct slice log_key(const struct site_pairs *site, const char *tag, struct key *ret)
{
    return key_seen(ret, tag, site->site->name, site->month, "log");
}

static bool is_over(const struct site_pairs *site, int64_t keep_s, int64_t now_ms)
{
    return seen_expire_ms(site->month, keep_s) <= now_ms;
}

size_t merge_seen_write(const struct merge_seen *merge, const char *tag, int64_t keep_s,
    int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_sites; i++) {
        const struct site_pairs *site = &merge->sites[i];
        struct key named;
        if (is_over(site, keep_s, now_ms)) {
            continue;
        }
        struct slice key = log_key(site, tag, &named);
        write_append(merge, site, key, out);
        resp_begin(out, "PEXPIREAT", key, 2);
        resp_decimal(out, seen_expire_ms(site->month, keep_s));
        resp_text(out, "NX");
        n += 2;
    }
    return n;
}

void merge_seen_due(const struct merge_seen *merge, const char *tag, int64_t keep_s, int64_t now_ms,
    const struct reply *replies, struct buffer *ret_keys)
{
    for (size_t i = 0; i < merge->n_sites; i++) {
        const struct site_pairs *site = &merge->sites[i];
        if (is_over(site, keep_s, now_ms)) {
            continue;
        }
        int64_t length = reply_integer(replies, 0);
        int64_t more = (int64_t)(site->pairs.n * sizeof(merge->pairs[0].fingerprint));
        if (length >= SEEN_LOG_BYTES && length % SEEN_LOG_BYTES < more) {
            struct key named;
            struct slice key = log_key(site, tag, &named);
            buffer_append(ret_keys, key.p, key.n);
            buffer_text(ret_keys, " ");
        }
        replies += 2; /* the second one is that of PEXPIREAT */
    }
}

#include "storage/write/merge_seen.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

struct site_pairs {
    struct slice site;
    uint64_t site_hash;
    uint32_t first, last, n;
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
    merge->n_sites = merge->n_pairs = 0;
}

/* Sites are few, the last one is looked at first.  NULL: out of memory. */
static struct site_pairs *find_site(struct merge_seen *merge, const struct row *row)
{
    for (size_t i = merge->n_sites; i-- > 0;) {
        struct site_pairs *site = &merge->sites[i];
        if (site->site_hash == row->site_hash && slice_equal(site->site, row->site)) {
            return site;
        }
    }
    if (!array_reserve(
            &merge->sites, &merge->sites_capacity, merge->n_sites, sizeof(*merge->sites))) {
        return NULL;
    }
    struct site_pairs *site = &merge->sites[merge->n_sites++];
    *site =
        (struct site_pairs){.site = row->site, .site_hash = row->site_hash, .first = INDEX_NONE};
    return site;
}

bool merge_seen_add(struct merge_seen *merge, const struct row *row)
{
    struct site_pairs *site = find_site(merge, row);
    uint64_t fingerprint = seen_fingerprint(&row->visitor, row->page_hash);
    if (site != NULL && site->n > 0 && merge->pairs[site->last].fingerprint == fingerprint) {
        return true; /* again at once: a reload */
    }
    if (site == NULL || !array_reserve(&merge->pairs, &merge->pairs_capacity, merge->n_pairs,
                            sizeof(*merge->pairs))) {
        return false;
    }
    uint32_t item = (uint32_t)merge->n_pairs++;
    merge->pairs[item] = (struct pair){fingerprint, INDEX_NONE};
    if (site->first == INDEX_NONE) {
        site->first = item;
    } else {
        merge->pairs[site->last].next = item;
    }
    site->last = item;
    site->n++;
    return true;
}

void merge_seen_write(const struct merge_seen *merge, const char *tag, int64_t now_s,
    int64_t keep_s, struct buffer *keys, size_t *n_keys, struct buffer *args, size_t *n_args)
{
    struct bucket month = bucket_at(zone_utc(), LEVEL_MONTH, now_s);
    resp_decimal(args, (int64_t)merge->n_sites);
    *n_args += 1;
    for (size_t i = 0; i < merge->n_sites; i++) {
        const struct site_pairs *site = &merge->sites[i];
        struct key key;
        key_seen(&key, tag, site->site, month, "log");
        resp_word(keys, key.p, key.n);
        resp_decimal(args, seen_expire_ms(month, keep_s));
        size_t n = site->n * sizeof(merge->pairs[0].fingerprint);
        buffer_text(args, "$");
        buffer_decimal(args, (int64_t)n);
        buffer_text(args, "\r\n");
        char *bytes = buffer_grow(args, n);
        for (uint32_t p = site->first; bytes != NULL && p != INDEX_NONE; p = merge->pairs[p].next) {
            memcpy(bytes, &merge->pairs[p].fingerprint, sizeof(merge->pairs[p].fingerprint));
            bytes += sizeof(merge->pairs[p].fingerprint);
        }
        buffer_text(args, "\r\n");
        *n_keys += 1;
        *n_args += 2;
    }
}

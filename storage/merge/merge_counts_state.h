/* merge_counts_state.h - the insides of the merging of counts.
 *
 * Layer: storage, private to merge_counts.c (what is counted where) and merge_counts_write.c (the
 * commands).
 */
#ifndef STORAGE_MERGE_MERGE_COUNTS_STATE_H
#define STORAGE_MERGE_MERGE_COUNTS_STATE_H

#include "storage/base/index.h"
#include "storage/known/known_sketches.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"
#include "storage/time/write_plan.h"

/* A bucket of a site, with its pages as a list. */
struct site_bucket {
    struct slice site;
    uint64_t site_hash;
    struct write_target target;
    uint32_t first_page, last_page, n_pages;
    bool tells; /* what its counters have is learnt from the answers */
};

/* A page in a bucket, with its rows as a list. */
struct page_count {
    uint32_t bucket;
    struct slice page;
    uint64_t count;
    uint64_t value;   /* what the counter has with it; 0: not known.. */
    uint32_t command; /* ..and this command's answer tells */
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

#endif

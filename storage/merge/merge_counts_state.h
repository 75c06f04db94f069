/* merge_counts_state.h - the insides of the merging of counts.
 *
 * Layer: storage, private to merge_counts.c (what is counted where), merge_counts_ask.c (what the
 * counters of old buckets have), merge_counts_write.c (the commands) and merge_sketches_write.c
 * (those of sketches).
 */
#ifndef STORAGE_MERGE_MERGE_COUNTS_STATE_H
#define STORAGE_MERGE_MERGE_COUNTS_STATE_H

#include "storage/base/buffer.h"
#include "storage/base/chain.h"
#include "storage/job/config.h"
#include "storage/known/known_counts.h"
#include "storage/known/known_sketches.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"
#include "storage/time/write_plan.h"

/* A bucket of a site, with its pages as a list. */
struct site_bucket {
    enum key_kind kind; /* KEY_PV or KEY_VV */
    const struct row_site *site;
    struct write_target target;
    struct chain pages;
    uint32_t n_others; /* the question asks of so many classes whether names were put together */
    bool has_others;   /* names of a class were put together in the bucket, or may have been */
    int64_t n_names;   /* the bucket has so many names at most */
    bool is_settled;   /* only folds and deletions change the bucket's counters */
    bool is_asked;     /* Redis is asked for the counters, in this step */
    bool is_told;      /* the values of all counters are known by answers: page_count.value */
    bool learns;       /* the counters are remembered when the commands were carried out */
};

/* A page in a bucket, with its rows as a list. */
struct page_count {
    uint32_t bucket;
    uint32_t command; /* without a value: the answer to this command tells it */
    struct slice page;
    uint64_t count; /* what the rows add to the counter */
    uint64_t value; /* what the counter has with `count`; 0: that is not known */
    bool is_new;    /* the bucket did not have the page, so there are no sketches */
    uint32_t n_visitors, n_addresses; /* elements for the sketches */
    struct chain members;
    uint32_t next;    /* the next page of the bucket */
    uint32_t coarser; /* this page in the next coarser bucket; INDEX_NONE: that is not written */
};

#define ROW_BITS 30 /* bits of a row's number: a task has no more for it either */

/* A row whose visitor or address may be new in a page's sketches.  A fold has several members for
 * each row, so they are small. */
struct member {
    uint32_t row : ROW_BITS;           /* the row's number among the rows */
    uint32_t visitor : 1, address : 1; /* the sketch gets the row's visitor, the row's address */
    uint32_t next;                     /* the next member of the page */
};

/* A sketch for which many elements came, and the registers that those raise which are added. */
struct many_elements {
    uint64_t key_hash;
    uint32_t n;                    /* how many elements came */
    size_t first_place, end_place; /* [first_place, end_place) of merge_counts.places */
};

struct merge_counts {
    const struct row *rows;
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
    struct buffer fresh; /* new keys and their sketches, as words of the next MSET */
    size_t n_fresh;      /* how many sketches `fresh` has */
    size_t next_asked;   /* the next answer belongs to this bucket, or to a later one */
    bool awaits_size;    /* the next answer says how many names that bucket has */
    const struct storage_config *config; /* has the caps of names; not owned */
    unsigned n_partitions;               /* so many partitions share a cap */
    int64_t now_ms;                      /* Redis's clock, UTC */
};

/* Is the bucket a recent minute: its keys cannot have expired, and its counters are remembered? */
static inline bool merge_is_recent(const struct merge_counts *merge, struct bucket bucket)
{
    return bucket.level == LEVEL_MINUTE && bucket.start_s >= merge->now_ms / 1000 - KNOWN_RECENT_S;
}

/* Has the bucket expired?  Then nothing is written: PEXPIREAT would delete its keys at once. */
static inline bool merge_is_over(const struct merge_counts *merge, const struct site_bucket *bucket)
{
    return bucket->target.expire_ms != 0 && merge->now_ms >= bucket->target.expire_ms;
}

/* The key of a bucket's counters. */
static inline struct slice merge_counters_key(
    struct key *key, const char *tag, const struct site_bucket *bucket)
{
    return key_bucket(
        key, tag, bucket->kind, bucket->site->name, bucket->target.bucket, (struct slice){NULL, 0});
}

#endif

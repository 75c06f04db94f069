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
    uint32_t n_others; /* of so many classes was asked whether names were put together.. */
    bool has_others;   /* ..and it has such a name.. */
    int64_t n_names;   /* ..and so many names at most */
    bool is_settled;   /* nobody but a fold changes its counters */
    bool is_asked;     /* what its counters have was asked for.. */
    bool is_told;      /* ..and is known: the values of its pages */
    bool tells;        /* what its counters have is learnt from the answers */
};

/* A page in a bucket, with its rows as a list. */
struct page_count {
    uint32_t bucket;
    uint32_t command; /* whose answer tells the value, where it is not known */
    struct slice page;
    uint64_t count;
    uint64_t value; /* what the counter has with it; 0: not known */
    bool is_new;    /* the bucket did not have it, so there are no sketches */
    uint32_t n_visitors, n_addresses;
    struct chain members;
    uint32_t next;    /* page of the same bucket */
    uint32_t coarser; /* the same in the next coarser bucket; INDEX_NONE: that one is not written */
};

#define ROW_BITS 30 /* of a row's number: that of a task has no more either */

/* A row whose visitor or address may be new in a page's sketches.  A fold has several of each row,
 * so they are small. */
struct member {
    uint32_t row : ROW_BITS;           /* its number among the rows */
    uint32_t visitor : 1, address : 1; /* to be written */
    uint32_t next;
};

/* A sketch that many elements came for, and where those go that are added. */
struct many_elements {
    uint64_t key_hash;
    uint32_t n; /* that came */
    size_t first_place, end_place;
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
    struct buffer fresh; /* keys and sketches that are new, as words.. */
    size_t n_fresh;      /* ..and how many */
    size_t next_asked;   /* bucket that may have asked for what is answered next.. */
    bool awaits_size;    /* ..which is how many names it has */
    const struct storage_config *config; /* with the caps of names.. */
    unsigned n_partitions;               /* ..which these share */
    int64_t now_ms;                      /* of the commands */
};

/* A minute whose keys cannot have expired, and whose counters are remembered. */
static inline bool merge_is_recent(const struct merge_counts *merge, struct bucket bucket)
{
    return bucket.level == LEVEL_MINUTE && bucket.start_s >= merge->now_ms / 1000 - KNOWN_RECENT_S;
}

/* Is the bucket's time over?  It is passed over then, for PEXPIREAT would delete it at once. */
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

/* question.h - what answering one question about a window holds: shards, their plans, what is under
 * way.
 *
 * Layer: storage, private to the count*.c files.  Belongs to a reader thread; scratch memory is
 * kept between questions.
 */
#ifndef STORAGE_COUNT_QUESTION_H
#define STORAGE_COUNT_QUESTION_H

#include "storage/core/core.h"
#include "storage/count/tally.h"
#include "storage/read/run.h"
#include "storage/schema/key.h"

/* Sets of metrics: bits 1 << enum metric.  Visits lie with the visitors, in all partitions; the
 * others with their page. */
#define METRICS_ALL      ((1u << METRICS) - 1)
#define METRICS_OF_PAGE  (METRICS_ALL & ~(1u << METRIC_VISITS))
#define METRICS_SKETCHES (1u << METRIC_UV | 1u << METRIC_IPS)

/* Neighbouring buckets in a plan that need not be read: closed ones of one level, remembered as one
 * (count/recall.h), or those of points of a series whose figures are (count/series.h). */
struct run {
    size_t first, n;  /* in the cover */
    size_t point;     /* that they belong to, if not recalled */
    bool recalled;    /* need not be read */
    enum proof proof; /* by the plan */
    struct cache_id id[METRICS];
};

/* More pages are several shards: of 1,000, the sketches of one bucket are 12 MB, which must not be
 * one turn of Redis's thread. */
#define SHARD_PAGES 32

/* What one partition is asked. */
struct shard {
    unsigned partition;
    unsigned metrics;           /* a set */
    const struct slice **pages; /* owned array of the question's pages; not if `rest` */
    size_t n_pages, pages_capacity;
    struct partition_view view; /* that it was planned by; recalled is what has its proofs */
    struct cover cover;         /* of all points, one behind the other */
    size_t *ends;               /* owned: the first bucket behind each point; not if `rest` */
    size_t ends_capacity;
    struct run *runs; /* owned; in time order, disjoint */
    size_t n_runs, runs_capacity;
    unsigned recalled; /* by which proofs anything of it was: see closed_same */
    bool rest;         /* of no point: the total of points that are recalled (count/series.h) */

    /* of its replies so far */
    bool asked;                      /* there is a chunk of it */
    bool seen, mixed;                /* several `ver`s */
    struct partition_view seen_view; /* the last one */
};

/* One MULTI under way: buckets [first, first + n) of a shard's cover. */
struct chunk {
    struct shard *shard;
    unsigned metrics; /* a set, of the shard's */
    size_t first, n;
    size_t reads;      /* buckets of them that are not remembered */
    size_t point;      /* that of the first bucket */
    bool ends_group;   /* nothing more comes for this group of points: see tally.h */
    size_t n_commands; /* between HMGET and TIME */
};

struct counter {
    struct core *core;
    const struct zone *zone; /* where the buckets of the site asked for are cut */
    struct tally tally;
    struct hll run[METRICS]; /* the run that is being read */
    uint64_t run_sum[METRICS];
    struct ver run_ver[METRICS]; /* its proof, in the reply that began it */
    struct shard *shards;        /* owned: for pages, and for visits */
    size_t n_shards, shards_capacity;
    struct shard *rest; /* owned: see there */
    size_t n_rest, rest_capacity;
    bool *known; /* owned, per point of the plan: its figures are recalled */
    size_t known_capacity;
    struct chunk *chunks;
    size_t n_chunks, chunks_capacity;
    struct buffer out;
    int64_t latest_s; /* Redis's clock in the newest reply */
    bool stale;       /* a plan did not hold */
    bool by_script;   /* Redis's memory is full */
    bool forgetful;   /* nothing is recalled: it did not hold twice */
    size_t reads;     /* keys that were asked for */
};

/* NULL: no memory. */
struct counter *counter_new(struct core *core);
void counter_free(struct counter *counter);

/* The page that stands for the whole site. */
extern const struct slice counter_whole_site;

/* Which keys hold it? */
enum key_kind metric_kind(enum metric metric);

/* How many keys, or fields, @n buckets of a shard are for @metrics of its own. */
size_t counter_reads(const struct shard *shard, unsigned metrics, size_t n);

/* How many keys hold @metric of one bucket, if it is one of @metrics: one a page for sketches, one
 * for sums. */
size_t counter_keys(const struct shard *shard, unsigned metrics, enum metric metric);

/* Forget what was asked; or only what was planned as the rest of a series. */
void counter_drop_shards(struct counter *c);
void counter_drop_rest(struct counter *c);

#endif

/* count_read.h - ask Redis for what a plan needs, and take it only if the plan still holds.
 *
 * Layer: storage, private to count.c.  Belongs to a reader thread.
 */
#ifndef STORAGE_COUNT_READ_H
#define STORAGE_COUNT_READ_H

#include "storage/core.h"
#include "storage/hll.h"
#include "storage/key.h"
#include "storage/session.h"

/* Neighbouring closed buckets of one level in a plan: what is remembered as one (count_cache.h). */
struct run {
    size_t first, n; /* in the cover */
    bool recalled;   /* need not be read */
    struct cache_id id;
};

/* What one partition is asked. */
struct shard {
    unsigned partition;
    const struct slice **pages; /* owned array of the question's pages */
    size_t n_pages;
    struct cover cover;
    struct run *runs; /* owned; in time order, disjoint */
    size_t n_runs, runs_capacity;
    bool recalled;  /* at least one of the runs is */
    struct ver ver; /* under which */
};

/* One MULTI under way: buckets [first, first + n) of a shard's cover. */
struct chunk {
    struct shard *shard;
    size_t first, n;
    size_t reads;      /* buckets of them that are not remembered */
    size_t n_commands; /* between HMGET and TIME */
};

struct counter {
    struct core *core;
    struct hll hll;
    struct hll run; /* the run that is being read */
    uint64_t run_sum;
    struct ver run_ver; /* of the reply that began it */
    struct shard shards[PARTITIONS_MAX];
    size_t n_shards;
    struct chunk *chunks;
    size_t n_chunks, chunks_capacity;
    struct buffer out;
    uint64_t sum;
    int64_t latest_s; /* Redis's clock in the newest reply */
    bool stale;       /* a plan did not hold */
    bool by_script;   /* Redis's memory is full */
    bool forgetful;   /* nothing is recalled: it did not hold twice */
    size_t reads;     /* keys, or fields, that were asked for */
};

/* The page that stands for the whole site. */
extern const struct slice counter_whole_site;

/* Is it estimated from sketches, or summed up?  Which keys hold it? */
bool metric_is_sketch(enum metric metric);
enum key_kind metric_kind(enum metric metric);

/* What decides, for a partition with @view, whether a bucket may be used at @now_s. */
struct cover_basis counter_basis(
    const struct counter *c, const struct partition_view *view, int64_t now_s);

/* Read the covers of all shards into c->hll or c->sum, and Redis's clock into c->latest_s.
 * c->stale: a rollup moved on, plan again from the views that were learnt.  *ret_lost: see
 * counter_run. */
enum storage_err counter_read(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost);

#endif

/* stats.h - what storage counts about itself: one table makes the struct and the text of /metrics.
 *
 * Layer: storage, public: plain values.  Thread-safe: every member is atomic.
 *
 *     COUNTER      only grows
 *     COUNTER_US   only grows; microseconds, shown as seconds
 *     GAUGE        a value of this moment
 */
#ifndef STORAGE_JOB_STATS_H
#define STORAGE_JOB_STATS_H

#include <stdatomic.h>
#include <stdint.h>

/*   field                kind     metric's name                          help */
#define STORAGE_STATS(X)                                                                           \
    X(queue_events, GAUGE, "tallyd_queue_events", "Events that wait for the next entry.")          \
    X(queue_refused, COUNTER, "tallyd_queue_refused_total",                                        \
        "Requests refused because the queue was full.")                                            \
    X(log_events, GAUGE, "tallyd_ingest_log_events",                                               \
        "Events that are acknowledged and not folded yet.")                                        \
    X(log_bytes, GAUGE, "tallyd_ingest_log_bytes", "Memory that these events take.")               \
    X(appends, COUNTER, "tallyd_appends_total", "Entries appended to the log.")                    \
    X(append_events, COUNTER, "tallyd_append_events_total", "Events in them.")                     \
    X(append_us, COUNTER_US, "tallyd_append_seconds_total",                                        \
        "Time from sending an entry to its answer.")                                               \
    X(appends_repeated, COUNTER, "tallyd_appends_repeated_total",                                  \
        "Entries appended again after a lost connection.")                                         \
    X(ack_late, COUNTER, "tallyd_replica_acks_late_total",                                         \
        "Times that too few replicas began to acknowledge what was written.")                      \
    X(log_jumps, COUNTER, "tallyd_log_jumps_total",                                                \
        "Times that entries before those held were lost with Redis.")                              \
    X(logs_gone, COUNTER, "tallyd_logs_gone_total",                                                \
        "Logs of this process that were closed while it slept, or deleted.")                       \
    X(entries_in_doubt, COUNTER, "tallyd_entries_in_doubt_total",                                  \
        "Entries given up with such a log that may have been counted.")                            \
    X(entries_missing, COUNTER, "tallyd_entries_missing_total",                                    \
        "Entries that folds have passed by: they were not in the log.")                            \
    X(folds, COUNTER, "tallyd_folds_total", "Folds of logs into counts.")                          \
    X(fold_events, COUNTER, "tallyd_fold_events_total", "Events in these folds.")                  \
    X(fold_transactions, COUNTER, "tallyd_fold_transactions_total",                                \
        "Transactions of these folds.")                                                            \
    X(fold_again, COUNTER, "tallyd_fold_again_total",                                              \
        "Transactions begun again because a partition's state had changed.")                       \
    X(names_capped, COUNTER, "tallyd_names_capped_total",                                          \
        "Counts of pages, named events and values that a cap put together as (other).")            \
    X(first_requests, COUNTER, "tallyd_first_requests_total",                                      \
        "Requests that were told which actions were the first of their user's day.")               \
    X(first_actions, COUNTER, "tallyd_first_actions_total",                                        \
        "Actions of such requests that were the first of their user's day.")                       \
    X(redis_errors, COUNTER, "tallyd_redis_errors_total", "Error replies of Redis.")               \
    X(redis_oom, COUNTER, "tallyd_redis_oom_total", "Writes refused by Redis for want of memory.") \
    X(redis_connects, COUNTER, "tallyd_redis_connects_total", "Connections made to Redis.")        \
    X(partitions_without_state, GAUGE, "tallyd_partitions_without_state",                          \
        "Partitions of a cluster that are known to have lost their states.")                       \
    X(partitions_in_open_slots, GAUGE, "tallyd_partitions_in_open_slots",                          \
        "Partitions of a cluster that are not counted while their slots are half moved.")          \
    X(redis_connected, GAUGE, "tallyd_redis_connected", "1 while the writer's connection stands.") \
    X(limit_checks, COUNTER, "tallyd_limit_checks_total", "Rate limits asked.")                    \
    X(limit_denied, COUNTER, "tallyd_limit_denied_total", "Rate limits that said no.")             \
    X(limit_penalised, COUNTER, "tallyd_limit_penalised_total",                                    \
        "Rate limits that said no because of a penalty.")                                          \
    X(limit_scripts, COUNTER, "tallyd_limit_scripts_total",                                        \
        "Scripts run for rate limits: many that come together share one.")                         \
    X(guard_leases, COUNTER, "tallyd_guard_leases_total",                                          \
        "Leases that the ingestion guard took or gave back.")                                      \
    X(queries, COUNTER, "tallyd_queries_total", "Windows counted.")                                \
    X(queries_joined, COUNTER, "tallyd_queries_joined_total",                                      \
        "Questions answered with an identical one that waited to be sent.")                        \
    X(queries_unchanged, COUNTER, "tallyd_queries_unchanged_total",                                \
        "Questions answered as a moment before, since nothing had changed.")                       \
    X(query_keys, COUNTER, "tallyd_query_keys_total", "Keys read to count them.")                  \
    X(query_replans, COUNTER, "tallyd_query_replans_total",                                        \
        "Plans made again because a rollup moved on.")                                             \
    X(cache_hits, COUNTER, "tallyd_cache_hits_total",                                              \
        "Runs of buckets that are over and were remembered.")                                      \
    X(cache_misses, COUNTER, "tallyd_cache_misses_total",                                          \
        "Runs of buckets that are over and had to be read.")                                       \
    X(seen_folds, COUNTER, "tallyd_seen_folds_total",                                              \
        "Logs of who saw what folded into Bloom filters.")                                         \
    X(seen_folded, COUNTER, "tallyd_seen_folded_total", "Pairs of user and page in those logs.")   \
    X(rollup_passes, COUNTER, "tallyd_rollup_passes_total", "Buckets rolled up.")                  \
    X(rollup_failures, COUNTER, "tallyd_rollup_failures_total", "Rollup passes given up.")         \
    X(rollup_leader, GAUGE, "tallyd_rollup_leader", "1 while this process leads the rollups.")

/* Upper bounds of a histogram's buckets. */
/*   us      seconds, as text */
#define STORAGE_BOUNDS(X)                                                                          \
    X(500, "0.0005")                                                                               \
    X(1000, "0.001")                                                                               \
    X(2500, "0.0025")                                                                              \
    X(5000, "0.005")                                                                               \
    X(10000, "0.01")                                                                               \
    X(25000, "0.025")                                                                              \
    X(50000, "0.05")                                                                               \
    X(100000, "0.1")                                                                               \
    X(250000, "0.25")                                                                              \
    X(500000, "0.5")                                                                               \
    X(1000000, "1")                                                                                \
    X(2500000, "2.5")

enum {
#define X(us, text) STORAGE_BOUND_##us,
    STORAGE_BOUNDS(X)
#undef X
        STORAGE_N_BOUNDS
};

/* How many of some events took how long, in microseconds. */
struct storage_histogram {
    _Atomic int64_t slower_than[STORAGE_N_BOUNDS + 1]; /* [i]: above bound i - 1, up to bound i */
    _Atomic int64_t sum_us;
};

void storage_histogram_observe(struct storage_histogram *histogram, int64_t us);

struct storage_stats {
#define X(field, kind, name, help) _Atomic int64_t field;
    STORAGE_STATS(X)
#undef X
    struct storage_histogram fold_seconds; /* tallyd_fold_seconds: see fold/fold.h */
};

#endif

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
    X(queue_events, GAUGE, "tallyd_queue_events", "Events that wait for the next flush.")          \
    X(queue_refused, COUNTER, "tallyd_queue_refused_total",                                        \
        "Requests refused because the queue was full.")                                            \
    X(log_events, GAUGE, "tallyd_ingest_log_events",                                               \
        "Events that are acknowledged and not folded yet.")                                        \
    X(log_bytes, GAUGE, "tallyd_ingest_log_bytes", "Memory that they take.")                       \
    X(appends, COUNTER, "tallyd_appends_total", "Entries appended to the log.")                    \
    X(append_events, COUNTER, "tallyd_append_events_total", "Events in them.")                     \
    X(append_us, COUNTER_US, "tallyd_append_seconds_total",                                        \
        "Time from sending an entry to its answer.")                                               \
    X(appends_repeated, COUNTER, "tallyd_appends_repeated_total",                                  \
        "Entries appended again after a lost connection.")                                         \
    X(redis_errors, COUNTER, "tallyd_redis_errors_total", "Error replies of Redis.")               \
    X(redis_oom, COUNTER, "tallyd_redis_oom_total", "Writes refused by Redis for want of memory.") \
    X(redis_connects, COUNTER, "tallyd_redis_connects_total", "Connections made to Redis.")        \
    X(redis_connected, GAUGE, "tallyd_redis_connected", "1 while the writer's connection stands.") \
    X(limit_checks, COUNTER, "tallyd_limit_checks_total", "Rate limits asked.")                    \
    X(limit_denied, COUNTER, "tallyd_limit_denied_total", "Rate limits that said no.")             \
    X(limit_scripts, COUNTER, "tallyd_limit_scripts_total",                                        \
        "Scripts run for rate limits: many that come together share one.")                         \
    X(guard_leases, COUNTER, "tallyd_guard_leases_total",                                          \
        "Leases that the ingestion guard took or gave back.")                                      \
    X(queries, COUNTER, "tallyd_queries_total", "Windows counted.")                                \
    X(queries_joined, COUNTER, "tallyd_queries_joined_total",                                      \
        "Questions answered with an identical one that waited to be sent.")                        \
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

struct storage_stats {
#define X(field, kind, name, help) _Atomic int64_t field;
    STORAGE_STATS(X)
#undef X
};

#endif

/* config.h - what storage is told when it is opened.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_CONFIG_H
#define STORAGE_JOB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/job/limit.h"
#include "storage/job/seen_job.h"
#include "storage/time/closed.h"

/* How long a visitor that is known by its address alone stays the same visitor, and an address the
 * same address.  In the next period it counts as a new one. */
enum rotation { ROTATE_NEVER, ROTATE_MONTH, ROTATE_WEEK, ROTATE_DAY };

/* The first second of the rotation period that holds @at_s; 0 for ROTATE_NEVER.  Periods are those
 * of UTC, and a week begins on Monday. */
int64_t rotation_start_s(enum rotation rotation, int64_t at_s);

/* The first second behind the rotation period that begins at @start_s; INT64_MAX for ROTATE_NEVER.
 */
int64_t rotation_end_s(enum rotation rotation, int64_t start_s);

/* What the ingestion guard limits: each token, each address or each site for itself. */
enum guard_by { GUARD_OFF, GUARD_TOKEN, GUARD_IP, GUARD_SITE };

/* What storage tells its caller about itself, for operators.  Behind a colon stands what notice()
 * gets as detail. */
enum storage_notice {
    STORAGE_CONNECTED,
    STORAGE_DISCONNECTED,
    STORAGE_CONNECT_FAILED,
    STORAGE_LINK_FAILED, /* a writer is connected, and another thread cannot be */
    STORAGE_SETTINGS_DIFFER,
    STORAGE_REFUSING,
    STORAGE_TAKES_WRITES, /* a log that refused an entry has taken one */
    STORAGE_ROLLUP_FAILED,
    STORAGE_SEEN_FAILED,
    STORAGE_LOG_BROKEN,    /* an entry of a log (log/entry.h) cannot be read: that log's id */
    STORAGE_DELETION_LOST, /* a mark was ended whose deletion has no record: its site, or "pages" */
    STORAGE_CLOCK,         /* Redis's clock was seen for the first time, or was set */
    STORAGE_LEADING,
    STORAGE_LEADER_LOST,
    STORAGE_LOCKS_AWAY, /* too few of lock_urls' servers answer: the others, and why */
    STORAGE_LOCKS_BACK, /* enough of them answer again */
    STORAGE_SETTINGS_CHANGED,
    STORAGE_DEGRADED,     /* storage starts without the servers of some partitions: one of them */
    STORAGE_FEW_REPLICAS, /* storage starts with fewer replicas than must acknowledge: a server */
    STORAGE_MAY_FORGET,   /* what Redis may lose when it crashes, or at a failover */
    STORAGE_NOTICES,      /* how many notices there are */
};

/* The reporting zone of a site, both by name. */
struct storage_site_zone {
    const char *site, *zone;
};

#define PARTITIONS_MAX 1024

/* The most URLs in storage_config.lock_urls, and the bytes of one URL with its NUL. */
#define LOCK_SERVERS_MAX 9
#define LOCK_URL_SIZE    512

struct storage_config {
    const char *redis_url; /* see storage/redis/url.h */
    unsigned partitions;   /* 1..PARTITIONS_MAX */
    struct retention retention;
    int64_t visit_timeout_s; /* a visit ends after so long without an event */
    enum rotation rotation;
    bool addresses; /* distinct addresses are counted */
    struct seen_config seen;
    /* How many names of a site have a place of their own in an hour (places/places.h): pages,
     * values of one dimension, named events.  0: as many as come. */
    uint64_t max_pages, max_values, max_events;
    int64_t log_hold_ms;      /* how far a failover can go back; with a cluster or Sentinels */
    unsigned ack_replicas;    /* replicas that have a request before it is acknowledged: 0..9 */
    size_t queue_events;      /* so many events may wait; more: STORAGE_FULL */
    enum guard_by guard_by;   /* GUARD_OFF: no guard */
    struct limit guard_limit; /* a funnel that passes limit_check */
    size_t cache_bytes;       /* memory for what is read of complete buckets; 0: none */
    unsigned readers;         /* reader threads, each with a connection */
    bool aof_rewrite;         /* have Redis rewrite its append-only file each night */
    bool lead;                /* take part in rollups */
    const char *lock_urls;    /* more servers for the leader's lock: see redlock_init(); "": none */
    const struct storage_site_zone *site_zones; /* for the sites that are not cut in UTC */
    size_t n_site_zones;
    /* Called on any thread of storage; must not block.  NULL: storage tells nothing. */
    void (*notice)(void *data, enum storage_notice what, const char *detail);
    void *notice_data;
};

#endif

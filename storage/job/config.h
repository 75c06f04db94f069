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

/* How long a visitor without `user` keeps its name. */
enum rotation { ROTATE_NEVER, ROTATE_MONTH, ROTATE_WEEK, ROTATE_DAY };

/* First second of the rotation period (UTC; weeks begin on Monday) that @at_s lies in; 0 for
 * ROTATE_NEVER. */
int64_t rotation_start_s(enum rotation rotation, int64_t at_s);

/* Who is limited by the ingestion guard: each for its own. */
enum guard_by { GUARD_OFF, GUARD_TOKEN, GUARD_IP, GUARD_SITE };

/* What storage tells its owner about itself, for the log. */
enum storage_notice {
    STORAGE_CONNECTED,
    STORAGE_DISCONNECTED,
    STORAGE_CONNECT_FAILED,
    STORAGE_SETTINGS_DIFFER,
    STORAGE_REFUSING,
    STORAGE_ROLLUP_FAILED,
    STORAGE_SEEN_FAILED,
    STORAGE_CLOCK, /* Redis's clock was seen first, or was set */
    STORAGE_LEADING,
    STORAGE_LEADER_LOST,
    STORAGE_SETTINGS_CHANGED,
};

/* The reporting zone of a site; both are names. */
struct storage_site_zone {
    const char *site, *zone;
};

struct storage_config {
    const char *redis_url; /* redis://[user:pass@]host:port[/db] or unix:/path */
    unsigned partitions;   /* 1..64 */
    struct retention retention;
    int64_t visit_timeout_s;
    enum rotation rotation;
    struct seen_config seen;
    size_t queue_events;      /* events that may wait; more: STORAGE_FULL */
    enum guard_by guard_by;   /* GUARD_OFF: no guard */
    struct limit guard_limit; /* a funnel that passes limit_check */
    size_t cache_bytes;       /* of what was read from closed buckets; 0: none */
    unsigned readers;         /* reader threads, each with a connection */
    bool lead;                /* take part in rollups */
    const char *lock_urls; /* further servers that keep the leader's lock: see redlock_init; "" */
    const struct storage_site_zone *site_zones; /* of sites that are not cut in UTC */
    size_t n_site_zones;
    void (*notice)(
        void *data, enum storage_notice what, const char *detail); /* any thread; must not block */
    void *notice_data;
};

#endif

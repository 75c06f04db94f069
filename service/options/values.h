/* values.h - the options of a running tallyd as plain values, and where each of them came from.
 *
 * Layer: service, pure.  option_table.c says how a text becomes a value; options_load() fills the
 * struct, and options_release() frees it (options.h).
 *
 * Ownership: strings belong to the struct.
 * Thread safety: a loaded struct is read-only.
 */
#ifndef SERVICE_OPTIONS_VALUES_H
#define SERVICE_OPTIONS_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/log/log_record.h"
#include "storage/base/index.h"
#include "storage/job/config.h"
#include "storage/time/closed.h"

struct option_family;

#define OPTIONS_MAX   80   /* the table has no more options than this */
#define OPTIONS_ERROR 1024 /* bytes that hold any error text and a NUL */

enum option_source { OPTION_DEFAULT, OPTION_FILE, OPTION_ENVIRONMENT, OPTION_FLAG };

/* Order and names are those of --fsync. */
enum redis_fsync { REDIS_FSYNC_ALWAYS, REDIS_FSYNC_EVERYSEC };

/* Strings belong to the struct.  Counts and sizes are int64_t, in the ranges of the table. */
struct options {
    const char *listen;     /* see listen.h */
    const char *redis;      /* see redis_url.h; "": the embedded one.  May hold a password */
    const char *lock_redis; /* see redis_url.h; "": none.  May hold passwords */
    const char *data_dir;
    const char *config; /* "": none */
    enum redis_fsync fsync;
    int64_t redis_memory; /* bytes; `half` has become a number */
    const char *redis_server;
    int64_t partitions;         /* `auto` has become a number */
    struct retention retention; /* `forever` is KEEP_FOREVER */
    int64_t max_body, max_body_memory;
    int64_t max_future_s;
    int64_t visit_timeout_s;
    enum rotation visitor_rotation;
    unsigned aof_rewrite; /* 0 off, 1 daily */
    unsigned ips;         /* 0 off, 1 on */
    unsigned seen;        /* 0 off, 1 on */
    int64_t seen_capacity;
    const char *seen_error; /* a rate that option_parse_rate() takes */
    int64_t keep_seen_s;
    int64_t request_timeout_ms;
    int64_t max_connections;
    int64_t threads; /* 0: by the number of cores */
    int64_t readers;
    int64_t cache_mb;
    int64_t queue; /* events that may wait */
    int64_t log_hold_ms;
    int64_t ack_replicas;
    enum log_syntax log_format;
    enum log_level log_level;
    bool insecure;
    const char *tokens; /* path; "": none */
    bool metrics_token;
    const char *ingest_limit;                   /* "": none */
    int64_t ingest_burst;                       /* OPTION_AS_LIMIT where there is no limit */
    enum guard_by ingest_limit_by;              /* counted from GUARD_TOKEN on: see live_guard() */
    const char *trusted_proxies, *cors_origins; /* see list_option.h */
    bool respect_dnt;
    unsigned bots;                             /* 0 count, 1 drop */
    const char *ignore_ip;                     /* see list_option.h */
    unsigned only_declared_sites;              /* 0 off, 1 on */
    const char *dimensions, *visitors_by;      /* see dimension_option.h */
    const char *deny_sources, *country_header; /* the same */
    const char *geo_db;                        /* path; "": none */
    int64_t max_pages, max_values, max_events; /* 0: no cap */

    /* Lines of families, such as `site.<name>.tz = value`, in the order of the file: see
     * entries.h. */
    struct option_entry {
        const struct option_family *family;
        char *name, *value; /* owned */
        unsigned line;
    } * entries;
    size_t n_entries, entries_capacity;

    /* Private. */
    struct index entry_index;
    struct option_origin {
        char *text; /* the value's text as given; owned */
        enum option_source source;
        unsigned line; /* the line in the file, if `source` is OPTION_FILE */
    } origins[OPTIONS_MAX];
};

#endif

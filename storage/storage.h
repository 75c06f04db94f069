/* storage.h - counts in Redis: the only door to storage/.
 *
 * Layer: storage.  Knows no HTTP and no JSON, and does not log: what happens is told through
 * errors, statistics and one callback.
 *
 * A job is embedded in the caller's request.  storage_submit() lends the job and everything it
 * points to to storage until done() is called, exactly once, on a thread of storage.  done() must
 * not block, submit or close.  Every job has a deadline (CLOCK_MONOTONIC) and is answered by then.
 *
 * Thread safety: all functions may be called from any thread, but open, drain and close from one.
 */
#ifndef STORAGE_STORAGE_H
#define STORAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/filter/filter.h"
#include "storage/hot/hot_pages.h"
#include "storage/job/claim.h"
#include "storage/job/event.h"
#include "storage/job/limit.h"
#include "storage/job/stats.h"
#include "storage/job/users_job.h"
#include "storage/job/window_job.h"
#include "storage/time/bucket.h"
#include "storage/time/cover.h"
#include "storage/time/step.h"

#define MUST_CHECK __attribute__((warn_unused_result))

/*        name             text */
#define STORAGE_ERRORS(X)                                                                          \
    X(STORAGE_OK, "ok")                                                                            \
    X(STORAGE_FULL, "the queue is full")                      /* nothing was sent */               \
    X(STORAGE_DOWN, "Redis cannot be reached")                /* nothing was sent */               \
    X(STORAGE_LATE, "Redis did not take it in time")          /* nothing was sent */               \
    X(STORAGE_REFUSED, "Redis refuses writes")                /* nothing was applied */            \
    X(STORAGE_OOM, "Redis is out of memory")                  /* nothing was applied */            \
    X(STORAGE_CONFIG, "the data is kept with other settings") /* nothing was applied */            \
    X(STORAGE_UNKNOWN, "Redis did not answer in time")        /* sent: some or all may hold */     \
    X(STORAGE_NOT_KEPT, "the window is not kept at this precision")                                \
    X(STORAGE_TOO_BROAD, "the question needs too many keys")                                       \
    X(STORAGE_NO_SET, "there is no such page set")                                                 \
    X(STORAGE_LIMITED, "over the limit") /* nothing was sent */                                    \
    X(STORAGE_TOO_FINE, "the step is finer than what is kept of the window")                       \
    X(STORAGE_TOO_MANY, "the series would have too many points")                                   \
    X(STORAGE_SHUTDOWN, "the service is stopping") /* nothing was sent */                          \
    X(STORAGE_NOMEM, "out of memory")              /* nothing was sent */

enum storage_err {
#define X(name, text) name,
    STORAGE_ERRORS(X)
#undef X
};
const char *storage_err_text(enum storage_err err);

/* What can be counted over a window. */
enum metric { METRIC_PV, METRIC_UV, METRIC_IPS, METRIC_VISITS };
#define METRICS 4

/* Who is limited by the ingestion guard: each for its own. */
enum guard_by { GUARD_OFF, GUARD_TOKEN, GUARD_IP, GUARD_SITE };

/* So many events of one of those that are limited. */
struct guard_claim {
    struct slice
        who; /* the token's name, the site, or the address: 4 or 16 bytes in network order */
    int64_t n;
};

/* In order of how bad they are. */
enum guard_verdict {
    GUARD_ADMITTED, /* and taken */
    GUARD_ASK,      /* Redis must be asked: submit the job with the claims */
    GUARD_REFUSED,
    GUARD_FAILED, /* no memory */
};

/* Input and result of STORAGE_WRITE.  Events are counted for their page and their site. */
struct write_job {
    struct event *events;
    size_t n;
    /* Granted by the guard before anything is written; else STORAGE_LIMITED.  n_claims 0: they were
     * granted before (storage_guard_try), or there is no guard. */
    const struct guard_claim *claims;
    size_t n_claims;
    struct limit_state guard; /* with claims: what the guard said; written by storage */
    struct claim *claim;      /* NULL: a request without an Idempotency-Key */
};

/* A point of a series. */
struct count_point {
    struct window window;
    uint64_t values[METRICS];
};

/* Input and result of STORAGE_COUNT. */
struct count_job {
    enum metric metric;
    bool all_metrics; /* not just that one: all of them, of one reading */
    struct slice site;
    const struct slice *pages; /* the union of these pages; n_pages 0: the whole site */
    size_t n_pages;
    struct page_set_ref set; /* and of the pages of this set */
    struct window window;
    bool to_is_now;   /* window.to_s is the end of the current minute: moved on if Redis's clock is
                         ahead */
    bool round_outer; /* take the nearest answerable window instead of STORAGE_NOT_KEPT */
    bool explain;     /* list the keys */
    enum step step;   /* of a series beside the figure; STEP_NONE: none */
    const struct zone *zone; /* of the step */

    /* Written by storage.  On STORAGE_NOT_KEPT only answered, used and outer_works are written: the
     * nearest window that could be answered, from_s == to_s if there is none; the step that works
     * there, the one asked for if it does, STEP_NONE if it works without one only; and whether
     * round_outer would take it.  On STORAGE_TOO_FINE, STORAGE_TOO_MANY and STORAGE_TOO_BROAD used
     * is the finest step that would work, STEP_NONE if there is none, and whole_works says whether
     * the window works without a step; then answered is, on STORAGE_TOO_FINE, a later part of it
     * that could be answered with the one asked for, from_s == to_s if there is none. */
    uint64_t value;           /* of metric */
    uint64_t values[METRICS]; /* of each that was asked for */
    struct window answered;
    bool outer_works, whole_works;
    struct count_point *points; /* of the series, in time order; owned by the job */
    size_t n_points;
    enum step used;             /* the step; chosen here for STEP_AUTO */
    uint32_t per_level[LEVELS]; /* keys per level, over all pages and partitions read */
    struct counted_key *keys;   /* with explain, in time order; owned */
    size_t n_keys;
};

/* Input and result of STORAGE_LIMIT: take from a limit.  STORAGE_UNKNOWN: it may have been taken.
 */
struct limit_job {
    struct limit limit;       /* passes limit_check */
    struct slice policy;      /* whose keys are its own; empty: of no policy */
    struct slice key;         /* 1..LIMIT_KEY_MAX bytes */
    int64_t need;             /* at least this; 0: only look */
    int64_t want;             /* at most this; a sliding limit takes what is needed */
    bool guard;               /* private to storage: the key is an ingestion guard's */
    struct limit_state state; /* written by storage */
};

/* Input of STORAGE_LIMIT_RESET: forget what was taken for a key, under any algorithm. */
struct limit_reset_job {
    struct slice key;
    const struct slice *policies; /* n_policies of them; the empty one is that of no policy */
    size_t n_policies;
};

/* Result of STORAGE_ROLLUP_STATUS and STORAGE_ROLLUP_RUN. */
struct rollup_job {
    bool leader;                 /* this process leads */
    char holder[128];            /* who leads, "host:pid"; "": nobody at this moment */
    int64_t fencing_token;       /* the last one that was drawn; 0: none yet */
    int64_t watermark_s[LEVELS]; /* the least over the partitions; [LEVEL_MINUTE] unused */
    int64_t lag_s[LEVELS];       /* by which it lies behind the last complete bucket */
};

/* Input and result of STORAGE_SEEN: did @user view one of @pages, or of @set, as far as is
 * remembered? */
struct seen_job {
    struct slice site, user;
    const struct slice *pages; /* storage adds the set's */
    size_t n_pages;
    struct page_set_ref set;
    bool seen;              /* false is certain */
    double false_positives; /* rate at which a yes is wrong, expected from what is in */
};

/* No process may take an event further ahead of Redis's clock than this.  (Readers take it that
 * nothing lies beyond: a window that reaches into next month needs few keys.) */
#define STORAGE_FUTURE_MAX_S 86400

/* STORAGE_WRITE and the limits are for the writer's thread, STORAGE_CLAIM and STORAGE_RELEASE for
 * that of the claims (see claim.h); the others are for the readers (readers.c). */
enum storage_op {
    STORAGE_WRITE,
    STORAGE_COUNT,
    STORAGE_PROBE,
    STORAGE_LIMIT,
    STORAGE_LIMIT_RESET,
    STORAGE_ACTIVITY,
    STORAGE_ACTIVE_USERS,
    STORAGE_USER_DAYS,
    STORAGE_FORGET_USER,
    STORAGE_PAGES,
    STORAGE_OVERLAP,
    STORAGE_PAGE_SET_PUT,
    STORAGE_PAGE_SET_GET,
    STORAGE_PAGE_SET_DELETE,
    STORAGE_SITES,
    STORAGE_ROLLUP_STATUS,
    STORAGE_ROLLUP_RUN,   /* after a pass over all that is over by now, whichever process leads */
    STORAGE_FILTER_READ,  /* FILTER_INFO, FILTER_CHECK */
    STORAGE_FILTER_WRITE, /* the other actions of a filter_job */
    STORAGE_SEEN,
    STORAGE_CLAIM,
    STORAGE_RELEASE,
};
#define STORAGE_OPS 22

struct storage_job {
    enum storage_op op;
    int64_t deadline_ms; /* CLOCK_MONOTONIC */
    union {
        struct write_job write;
        struct count_job count;
        struct limit_job limit;
        struct limit_reset_job limit_reset;
        struct activity_job activity;
        struct active_users_job active_users;
        struct user_days_job user_days;
        struct forget_user_job forget_user;
        struct pages_job pages;
        struct overlap_job overlap;
        struct page_set_job page_set;
        struct sites_job sites;
        struct rollup_job rollup;
        struct filter_job filter;
        struct seen_job seen;
        struct claim *claim; /* of STORAGE_CLAIM and STORAGE_RELEASE */
    } u;
    void (*done)(struct storage_job *job);
    void *data; /* the caller's */

    enum storage_err err; /* valid from done() on */
    char detail[96];      /* Redis's own words for STORAGE_REFUSED, "" else */

    /* Private to storage from submit to done. */
    struct storage_job *next;
    uint64_t parts_all; /* bit set of partitions */
    size_t cost;
    bool begun; /* of a rollup: see rollup/jobs.h */
    void *rows;
    uint64_t question; /* see question_hash() */
};

/* Give back what the results own.  Harmless on a job that was never submitted (zeroed). */
void storage_job_release(struct storage_job *job);

struct storage;

/* How long a visitor without `user` keeps its name. */
enum rotation { ROTATE_NEVER, ROTATE_MONTH, ROTATE_WEEK, ROTATE_DAY };

/* First second of the rotation period (UTC; weeks begin on Monday) that @at_s lies in; 0 for
 * ROTATE_NEVER. */
int64_t rotation_start_s(enum rotation rotation, int64_t at_s);

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

/* Who saw what: see seen/layout.h. */
struct seen_config {
    bool on;           /* events with a user feed it */
    uint64_t capacity; /* pairs of user and page that a site has in a month before it grows */
    double error;      /* rate of false yeses, over all months that are kept */
    int64_t keep_s;    /* a month is kept so long after its end */
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

/* Start threads; connecting goes on in the background.  @config is copied, strings too.
 * On failure returns NULL and @ret_error names the fault (static text). */
struct storage *storage_open(
    const struct storage_config *config, const char **ret_error) MUST_CHECK;

/* Lend @job to storage.  If it cannot be taken, done() is called at once, on this thread, with the
 * error. */
void storage_submit(struct storage *storage, struct storage_job *job);

/* The ingestion guard (guard.h), without waiting: may events with these claims be written?  All of
 * them or none.  *ret_state tells how it stands, but for GUARD_FAILED. */
enum guard_verdict storage_guard_try(struct storage *storage, const struct guard_claim *claims,
    size_t n, struct limit_state *ret_state);

/* Is it known that not even one event of @who would be admitted?  For those who want to refuse
 * before they work. */
bool storage_guard_closed(struct storage *storage, struct slice who, struct limit_state *ret_state);

/* Another limit from now on, for a guard that is on: a funnel that passes limit_check.  What was
 * taken stays taken; leases that are out hold what they have. */
void storage_guard_set_limit(struct storage *storage, const struct limit *limit);

/* What is left to @who, as far as is known here: for answers to requests of which nothing is taken.
 * Who was never heard of has all of it. */
void storage_guard_peek(struct storage *storage, struct slice who, struct limit_state *ret_state);
/* The system's time zone of that IANA name; good until storage_close.  NULL: there is none, and
 * *ret_fault says what is wrong (static text).  May read a file, the first time. */
const struct zone *storage_zone(struct storage *storage, struct slice name, const char **ret_fault);

/* The reporting zone of @site: where its hours, days and months are cut. */
const struct zone *storage_site_zone(struct storage *storage, struct slice site);

/* A lower bound of Redis's clock, UTC milliseconds: a TIME seen in a reply and the monotonic time
 * since. 0 as long as no reply was seen. */
int64_t storage_now_ms(struct storage *storage);

/* The oldest time an event may have to be kept anywhere, in whichever zone its site is cut, given
 * @now_s: INT64_MIN if months are kept forever. */
int64_t storage_oldest_s(struct storage *storage, int64_t now_s);

/* A number that is another one whenever Redis has refused to write, or the connection for writing
 * was lost, and STORAGE_NO_WRITER while there is none; *ret_err: why it last changed.  Thread-safe.
 */
#define STORAGE_NO_WRITER UINT64_MAX
uint64_t storage_write_fault(struct storage *storage, enum storage_err *ret_err);
/* Seconds by which the readers' watermark of the slowest partition lies behind the last complete
 * bucket. */
int64_t storage_rollup_lag_s(struct storage *storage, enum level level);

/* The hottest pages of the last half minute, as this process saw them; see hot_pages.h. */
bool storage_hot_pages(
    struct storage *storage, size_t limit, struct hot_page **ret, size_t *ret_n) MUST_CHECK;

/* Counters; see stats.h. */
struct storage_stats *storage_stats(struct storage *storage);

/* Finish what was lent until @deadline_ms (CLOCK_MONOTONIC), then answer what is left with
 * STORAGE_SHUTDOWN or STORAGE_UNKNOWN.  New jobs are refused.  Afterwards nothing is lent any more.
 */
void storage_drain(struct storage *storage, int64_t deadline_ms);

/* Stop the threads and free.  After storage_drain. */
void storage_close(struct storage *storage);

#endif

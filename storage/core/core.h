/* core.h - what the threads of one storage share.
 *
 * Layer: storage, private to it.
 *
 * A storage has several threads: the writer, readers, the rollup and others.  Each has a connection
 * of its own.  The core holds what all of them need: the configuration, Redis's clock, counters,
 * what was last seen of each partition, and flags such as "the service stops".  A member is set
 * before the threads start and stays constant from then on, unless its comment says otherwise.
 */
#ifndef STORAGE_CORE_CORE_H
#define STORAGE_CORE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/base/compiler.h"
#include "storage/core/deletions.h"
#include "storage/core/partition_marks.h"
#include "storage/core/period_secrets.h"
#include "storage/core/redis_clock.h"
#include "storage/core/standing.h"
#include "storage/core/wake.h"
#include "storage/job/config.h"
#include "storage/job/job.h"
#include "storage/job/stats.h"
#include "storage/redis/redis.h"
#include "storage/redis/resolvers.h"
#include "storage/redis/url.h"
#include "storage/schema/identity.h"
#include "storage/schema/partition.h"
#include "storage/schema/partition_state.h"
#include "storage/schema/settings.h"
#include "storage/time/site_zones.h"

struct answers;
struct asker;
struct script_digests;
struct topology;
struct unfolded;

struct core {
    struct storage_config config; /* its strings are of no use after the start */
    /* Two members tell what `url` leads to.  `topology` is not NULL with a cluster and with
     * Sentinels: another server may have a partition later (session/server.h).  `is_spread` is true
     * with a cluster: several servers have the partitions at the same time.  The session of a
     * thread that talks with all servers has a dispatcher (session/session.h). */
    struct redis_url url;
    struct topology *topology;  /* thread-safe; NULL: one Redis */
    struct asker *asker;        /* the topology asks servers by it; NULL: one Redis */
    struct resolvers resolvers; /* thread-safe */
    struct partitions partitions;
    bool is_spread;
    unsigned n_logs;         /* places of logs in a cluster: see core_log_partition() */
    char process[17];        /* a random id, hexadecimal; see hot/fleet.h */
    struct site_zones sites; /* in which zone each site is cut */
    /* Field cfg of every partition: see settings_print().  The text is whole once `secret` is
     * known: from then on it names the data set, whose id is data_set. */
    char cfg[SETTINGS_TEXT];
    uint64_t data_set;

    struct redis_clock clock;   /* thread-safe */
    struct storage_stats stats; /* atomic */
    struct cache *cache;        /* what was read of closed buckets, thread-safe; NULL: no cache */
    struct answers *answers;    /* whole answers (read/answers.h); NULL if `cache` is NULL */
    /* NULL until the writer's first connection.  Never replaced; core_release() frees it. */
    const struct secret *_Atomic secret;
    /* The digests that the first connection was told, the same on all.  Set and freed as `secret`.
     */
    const struct script_digests *_Atomic scripts;
    struct period_secrets period_secrets; /* thread-safe */
    struct deletions deletions;           /* thread-safe */
    struct unfolded
        *unfolded;         /* thread-safe: what this process has acknowledged (log/unfolded.h) */
    _Atomic bool ready;    /* the writer's connection stands and the schema was checked */
    _Atomic bool refusing; /* Redis has been away for a while: refuse new jobs at once */
    _Atomic bool lacks_replicas;  /* one server: too few replicas acknowledge: refuse to write */
    _Atomic bool settings_differ; /* the data is kept with other settings: refuse to serve */
    _Atomic bool is_foreign;      /* the data is that of another installation: refuse to serve */
    _Atomic bool emptied;       /* a partition has no state: the writer prepares all of them anew */
    _Atomic bool is_first_lost; /* partition 0 of a cluster has no state: the secret may be gone */
    _Atomic bool stopping;
    _Atomic bool has_aof;       /* Redis has an append-only file */
    _Atomic int64_t go_back_ms; /* how far Redis can go back when it crashes; 0: it cannot */
    struct standing standing;   /* thread-safe: since when Redis has not gone back */
    int64_t hold_ms; /* how far Redis can go back when a replica takes over; 0: no replica does */
    const char *_Atomic durability_warning; /* the warning that was told last; static; NULL: none */
    _Atomic unsigned questions;             /* how many questions are being read now */
    _Atomic int64_t settled_us;             /* see read/settled.h; CLOCK_MONOTONIC */
    _Atomic int64_t folded_us;              /* when a round that counted events ended last */
    _Atomic size_t held_bytes;              /* what all writers hold (log/held.c) */
    /* By place of the log: when Redis answered the oldest entry of this process that a crash may
     * still take (log/append.h), CLOCK_MONOTONIC; 0: there is no such entry. */
    _Atomic int64_t unsafe_since_us[LOG_PARTITIONS_MAX];
    /* 256 times how often Redis has refused a write, plus the enum storage_err of the last time. */
    _Atomic uint64_t write_fault;
    struct leader *_Atomic leader; /* NULL: this process takes no part in rollups */

    /* See core_catch_up().  Set before any thread starts that asks questions; NULL: this process
     * folds nothing. */
    enum storage_err (*catch_up)(void *data, int64_t before_us, int64_t deadline_ms);
    void *catch_up_data;

    pthread_mutex_t view_lock; /* guards views; latest_s grows under it */
    struct partition_view views[PARTITIONS_MAX];
    _Atomic int64_t latest_s; /* the greatest over_s that was seen of any partition */
    /* By level: buckets that end by shorter_until_s may be kept only for shorter_keep_s (struct
     * retention).  Each is the extreme of all partitions: the latest instant, the shortest time.
     * 0: all buckets are kept as long as is configured. */
    _Atomic int64_t shorter_until_s[LEVELS], shorter_keep_s[LEVELS];

    struct partition_marks lost_states, open_slots; /* of a cluster; thread-safe */

    struct wake rollup_wake; /* wakes the rollup thread when something is due earlier */
};

/* Make the locks of @core, which the caller has zeroed, but for the configuration; free what the
 * core owns, when no thread uses it. */
void core_init(struct core *core);
void core_release(struct core *core);

/* The functions below are thread-safe. */

/* What several servers have shown twice, so many ms apart, none of them can lose any more. */
static inline int64_t core_apart_ms(const struct core *core)
{
    int64_t go_back_ms = atomic_load(&core->go_back_ms);
    return core->hold_ms > go_back_ms ? core->hold_ms : go_back_ms;
}

/* Note that a reply that just came had the time @redis_us, UTC in microseconds.  0 or less is
 * ignored. */
void core_time_seen(struct core *core, int64_t redis_us);

/* The same for a reply about @partition.  Several servers have several clocks, of which only that
 * of partition 0's server counts. */
static inline void core_time_of(struct core *core, unsigned partition, int64_t redis_us)
{
    if (partition == 0 || !core->is_spread) {
        core_time_seen(core, redis_us);
    }
}

/* The number of places of logs: 1 where one server has all partitions. */
static inline unsigned core_logs(const struct core *core)
{
    return core->is_spread ? core->n_logs : 1;
}

/* The partition that has the logs of place @i, below core_logs(), the register of these logs, and
 * the records of keys.  The places are spread evenly over the partitions. */
static inline unsigned core_log_partition(const struct core *core, unsigned i)
{
    return core->is_spread ? i * core->partitions.n / core->n_logs : 0;
}

/* The place of the record of @key.  A request with the key goes into a log at that place. */
static inline unsigned core_log_of_key(const struct core *core, const struct key_digest *key)
{
    return core->is_spread ? (unsigned)(key->bytes[0] << 8 | key->bytes[1]) % core->n_logs : 0;
}

/* A copy of what was last seen of a partition.  If nothing was seen, the view of a partition that
 * is empty now. */
struct partition_view core_view(struct core *core, unsigned partition);

/* For how many seconds the rollups lag behind: from the instant up to which the buckets of @level
 * are complete in the slowest partition, to the end of the last bucket that is over.  Also 0 before
 * Redis's clock was seen. */
int64_t core_rollup_lag_s(struct core *core, enum level level);

/* The latest time that Redis's clock is known to have had while data was written, or @now_s if that
 * is later.  Redis's clock may have been set back since. */
int64_t core_latest_s(const struct core *core, int64_t now_s) MUST_CHECK;

/* May a crash of Redis still take an entry that this process acknowledged before @us
 * (CLOCK_MONOTONIC)? */
bool core_may_lose(const struct core *core, int64_t us);

/* Remember @view, which a reply has just told.  Writes view->seen_ms and the members of @view that
 * end in _held, and moves the latest time of all partitions on. */
void core_set_view(struct core *core, unsigned partition, struct partition_view *view);

/* The instant, UTC seconds, before which no bucket of @level is kept any more at @now_s.
 * INT64_MIN: all buckets are kept. */
int64_t core_oldest_s(const struct core *core, enum level level, int64_t now_s);

/* Forget that @partition has @ver, because a reply had another `ver`: nothing that is remembered
 * under @ver is taken any more. */
void core_forget_ver(struct core *core, unsigned partition, const struct ver *ver);

/* partition_state_parse() with this process's settings and with what it knows of Redis's clock. */
bool core_parse_state(
    struct core *core, const struct reply *fields, struct partition_view *ret) MUST_CHECK;

/* Why the service refuses to work with the data: STORAGE_CONFIG or STORAGE_FOREIGN.  STORAGE_OK:
 * the service works. */
enum storage_err core_refuses(const struct core *core);

/* The error for a reply with the settings @cfg, which are not this process's: STORAGE_CONFIG or
 * STORAGE_FOREIGN.  Settings of another data set stop all work at once. */
enum storage_err core_other_settings(struct core *core, struct slice cfg);

/* Have everything counted that was acknowledged before @before_us (CLOCK_MONOTONIC, not in the
 * future), by any process, until @deadline_ms (CLOCK_MONOTONIC).  Any other result than STORAGE_OK
 * says why something is left; STORAGE_BEHIND: counting takes longer, or this process folds nothing.
 */
enum storage_err core_catch_up(struct core *core, int64_t before_us, int64_t deadline_ms);

/* Note that everything is counted that was acknowledged before @us (CLOCK_MONOTONIC). */
void core_settled(struct core *core, int64_t us);

/* In a cluster: does @fields, a reply of STATE_FIELDS, say that @partition has no state?  The
 * partition had a state since the first start.  So its server has lost the state, or another server
 * has it in a slot that is torn.  No state is made anew: what touches the partition fails.  The
 * finding is noted; the caller of storage is told of a loss that is news. */
bool core_state_lost(struct core *core, unsigned partition, const struct reply *fields);

/* Parse @reply, to the command of partition_state_ask(), into @ret, and remember it by
 * core_set_view().  STORAGE_STATE_LOST: see core_state_lost().  Any other error: see
 * core_other_settings(). */
enum storage_err core_learn_state(
    struct core *core, unsigned partition, const struct reply *reply, struct partition_view *ret);

/* In a cluster: note whether @partition has lost its state, as a reply has said. */
void core_note_state(struct core *core, unsigned partition, bool is_lost);

/* In a cluster: note whether @partition could not be counted because its slot is half moved. */
void core_note_open_slot(struct core *core, unsigned partition, bool is_open);

/* In a cluster: write which partition is not counted because its slot is half moved.  False, with
 * @text untouched: no such partition is known. */
#define OPEN_SLOT_TEXT 56
bool core_open_slot_text(const struct core *core, char text[OPEN_SLOT_TEXT]);

/* In a cluster: write which partition is known to have lost its state, and what to do.  False, with
 * @text untouched: no such partition is known. */
#define LOST_STATE_TEXT 96
bool core_lost_text(const struct core *core, char text[LOST_STATE_TEXT]);

/* Note that Redis has just refused a write with @err.  /readyz says so until a write is taken.
 * STORAGE_OOM is counted. */
void core_write_failed(struct core *core, enum storage_err err);

/* Tell the caller of storage what has happened, for operators. */
void core_notice(struct core *core, enum storage_notice what, const char *detail);

/* Does the service go on?  For struct redis_look of the threads that no request waits for; @data is
 * the core. */
bool core_runs(void *data);

#endif

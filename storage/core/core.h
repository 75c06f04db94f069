/* core.h - what the threads of one storage share.
 *
 * Layer: storage, private to it.  Fields are set before the threads start and constant from then
 * on, unless the comment says otherwise.
 */
#ifndef STORAGE_CORE_CORE_H
#define STORAGE_CORE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/core/redis_clock.h"
#include "storage/core/wake.h"
#include "storage/job/config.h"
#include "storage/job/job.h"
#include "storage/job/stats.h"
#include "storage/redis/redis.h"
#include "storage/schema/identity.h"
#include "storage/schema/partition.h"
#include "storage/schema/rolled.h"
#include "storage/schema/settings.h"
#include "storage/time/site_zones.h"

struct core {
    struct storage_config config; /* strings owned elsewhere: see storage.c */
    struct redis_endpoint endpoint;
    struct partitions partitions;
    bool
        one_node; /* all partitions lie together: a script may serve several (false in a cluster) */
    struct site_zones sites; /* where each site is cut */
    char cfg[SETTINGS_TEXT]; /* field cfg of every partition: see settings_print */

    struct redis_clock clock;   /* thread-safe */
    struct storage_stats stats; /* atomic */
    struct cache *cache;        /* of closed buckets, thread-safe; NULL: none */
    const struct secret
        *_Atomic secret;   /* NULL until the first connection; then never freed before close */
    _Atomic bool ready;    /* the writer's connection stands and the schema was checked */
    _Atomic bool refusing; /* cannot be reached for a while: new jobs are refused at once */
    _Atomic bool settings_differ; /* the data is kept with other settings: refuse to serve */
    _Atomic bool stopping;
    _Atomic unsigned questions; /* being read */
    /* How many writes Redis has refused, or connections for writing were lost, times 256, and the
     * enum storage_err of the last. */
    _Atomic uint64_t write_fault;
    struct leader *_Atomic leader; /* NULL: takes no part in rollups */

    pthread_mutex_t view_lock; /* guards views */
    struct partition_view views[PARTITIONS_MAX];

    struct wake rollup_wake; /* something is due earlier than the rollup thread believes */
};

/* Locks and the like.  The caller has zeroed @core. */
void core_init(struct core *core);
void core_release(struct core *core);

/* A reply that just came said that it was @redis_us. */
void core_time_seen(struct core *core, int64_t redis_us);

/* Copy a partition's view; where none is known, that of a partition that is empty now. */
struct partition_view core_view(struct core *core, unsigned partition);
/* Keep @view, which a reply has just told; sets its over_held. */
void core_set_view(struct core *core, unsigned partition, struct partition_view *view);

/* rolled_parse, with this process's settings and its idea of Redis's clock. */
bool core_parse_rolled(struct core *core, const struct reply *rolled, struct partition_view *ret);

/* Redis has just refused to write, or cannot be reached: /readyz says so until one is taken.
 * STORAGE_OOM is counted. */
void core_write_failed(struct core *core, enum storage_err err);

/* Tell the owner. */
void core_notice(struct core *core, enum storage_notice what, const char *detail);

/* Is it to go on?  A redis_look of threads that nobody waits for, whose data is the core. */
bool core_runs(void *data);

#endif

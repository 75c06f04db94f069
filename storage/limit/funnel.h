/* funnel.h - those who are limited: the table of them, and what is known of each.
 *
 * Layer: storage, private to guard.c (may these events come in?) and limit/lease.c (what is taken
 * from Redis ahead).  A funnel that is free (nothing left of its lease, nothing under way, nobody
 * waits) is forgotten a minute after its last use, or when it is the oldest and the table is full.
 * What is known is an estimate between two answers of Redis, which alone decides.
 *
 * Ownership: the table owns its funnels; none is forgotten while its lease is under way.  Thread
 * safety: all under guard->lock.  Times are CLOCK_MONOTONIC, us.
 */
#ifndef STORAGE_LIMIT_FUNNEL_H
#define STORAGE_LIMIT_FUNNEL_H

#include "storage/core/core.h"
#include "storage/job/queue.h"

#define FUNNEL_HEADS    16384 /* of the table's chains */
#define FUNNEL_ID_MAX   64
#define FUNNEL_FRESH_US 1000000 /* what Redis said is believed for so long: others give back */

/* One of those that are limited. */
struct funnel {
    struct guard *guard;
    struct funnel *next;          /* in its chain */
    struct funnel *newer, *older; /* by last use */
    uint64_t hash;
    char id[FUNNEL_ID_MAX]; /* in the Redis key */
    size_t id_n;
    bool known;            /* Redis was asked at least once */
    bool asking;           /* lease is under way */
    int64_t left;          /* of the lease */
    int64_t told_us;       /* when Redis said so */
    int64_t full_us;       /* when all will have come back, by what Redis said last */
    int64_t hold_until_us; /* Redis had nothing left: not asked before */
    int64_t used_us;
    struct storage_job lease;
    struct job_queue waiting; /* write jobs, for the lease that is under way */
    size_t who_n;
    char who[];
};

struct guard {
    struct core *core;
    bool (*submit)(void *data, struct storage_job *job, enum storage_err *ret_err);
    void *submit_data;
    void (*on_lease)(struct storage_job *lease); /* a lease was answered */

    /* Guards all below, and all funnels.  Lock order: submit() is called under it, and takes the
     * writer's lock. */
    pthread_mutex_t lock;
    struct limit limit;
    int64_t capacity, lease, pace_us;
    double interval_us; /* between two: for estimates only, Redis decides */
    struct funnel *heads[FUNNEL_HEADS];
    struct funnel *newest, *oldest;
    size_t n;
    size_t n_holding; /* funnels with something left */
    size_t n_awaited; /* funnels on which jobs wait */
    int64_t late_ms;  /* no job that waits is late before; INT64_MAX: none waits */
    uint64_t dice;
    int64_t tick_ms; /* no look for idle leases before */
};

/* The funnel of @who, used @now_us, remembered from now on.  NULL: out of memory, or too many are
 * busy, or Redis was never seen. */
struct funnel *funnel_find(struct guard *guard, struct slice who, int64_t now_us);

/* The same without remembering anything.  NULL: it is not known. */
const struct funnel *funnel_known(const struct guard *guard, struct slice who);

/* It is the newest now. */
void funnel_use(struct guard *guard, struct funnel *funnel, int64_t now_us);

/* Forget some of those that were not used for long. */
void funnel_forget_old(struct guard *guard, int64_t now_us);

/* How long until @n more than is left here can be had; 0: now, as far as is known. */
int64_t funnel_wait_us(
    const struct guard *guard, const struct funnel *funnel, int64_t n, int64_t now_us);

/* What is left, for an answer's headers: ret->reset_us and ret->remaining. */
void funnel_describe(const struct guard *guard, const struct funnel *funnel, int64_t now_us,
    struct limit_state *ret);

/* What one charge gets; *ret_retry_us where it is refused. */
enum guard_verdict funnel_judge(const struct guard *guard, const struct funnel *funnel, int64_t n,
    int64_t now_us, int64_t *ret_retry_us);

/* Nobody waits for @funnel any more: the jobs that did. */
struct storage_job *funnel_take_waiting(struct guard *guard, struct funnel *funnel);

#endif

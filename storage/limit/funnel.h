/* funnel.h - the guard's table of tokens, addresses or sites, and what is known of their limits.
 *
 * Layer: storage, private to guard.c and lease.c.  Not thread-safe: guard->lock guards all of it.
 *
 * The ingestion guard (guard.h) limits each token, address or site by a funnel, a rate limit that
 * Redis keeps (job/limit.h).  This process remembers for each funnel what Redis said last, and what
 * is left of the lease: the part of the limit that this process has taken from Redis ahead.
 * Between two answers of Redis this is an estimate; Redis alone decides.
 *
 * A funnel is idle if nothing is left of its lease, no answer is awaited and no job waits.  An idle
 * funnel is forgotten a minute after its last use.  When the table is full, the funnel that was
 * used longest ago is forgotten, if it is idle.
 *
 * Ownership: the table owns its funnels.  A funnel is not forgotten while its lease is under way.
 * Times are microseconds of CLOCK_MONOTONIC unless a name says otherwise.
 */
#ifndef STORAGE_LIMIT_FUNNEL_H
#define STORAGE_LIMIT_FUNNEL_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/job/queue.h"

#define FUNNEL_HEADS    16384 /* chains of the table */
#define FUNNEL_ID_MAX   64
#define FUNNEL_FRESH_US 1000000 /* how long an answer holds: other processes give leases back */

/* A token, address or site that is limited. */
struct funnel {
    struct guard *guard;
    struct funnel *next;          /* the next funnel in its chain */
    struct funnel *newer, *older; /* neighbours by last use */
    uint64_t hash;                /* of `who` */
    char id[FUNNEL_ID_MAX];       /* stands for `who` in the key of Redis */
    size_t id_n;
    bool known;               /* Redis has answered at least once */
    bool asking;              /* the job `lease` is under way */
    int64_t left;             /* events left of the lease */
    int64_t told_us;          /* when Redis answered last */
    int64_t full_us;          /* when the whole limit will be free again, by that answer */
    int64_t hold_until_us;    /* Redis had nothing left: do not ask it before this time */
    int64_t used_us;          /* when the funnel was used last */
    struct storage_job lease; /* asks Redis for a lease, or gives one back */
    struct job_queue waiting; /* write jobs that wait for the answer to `lease` */
    size_t who_n;
    char who[]; /* struct guard_charge: a token, an address or a site */
};

struct guard {
    struct core *core;
    bool (*submit)(void *data, struct storage_job *job, enum storage_err *ret_err);
    void *submit_data;
    void (*on_lease)(struct storage_job *lease); /* called when a lease was answered */

    /* Guards all below, and all funnels.  Lock order: submit() is called under it for a lease, and
     * takes a sender's lock. */
    pthread_mutex_t lock;
    struct limit limit;
    int64_t capacity;   /* events that can pass at once */
    int64_t lease;      /* events of a lease, at most */
    int64_t pace_us;    /* mean pause after Redis had nothing left */
    double interval_us; /* in which one event comes back: for estimates only */
    struct funnel *heads[FUNNEL_HEADS];
    struct funnel *newest, *oldest; /* by last use */
    size_t n;                       /* number of funnels */
    size_t n_holding;               /* funnels with something left */
    size_t n_awaited;               /* funnels on which jobs wait */
    int64_t late_ms;                /* the earliest deadline of waiting jobs; INT64_MAX: none */
    uint64_t dice;                  /* state of the random numbers */
    int64_t tick_ms;                /* when to look for idle leases next */
};

/* The funnel of @who, used at @now_us.  Makes one if there is none.  NULL: out of memory, or the
 * table is full of funnels that are busy, or Redis was never seen. */
struct funnel *funnel_find(struct guard *guard, struct slice who, int64_t now_us) MUST_CHECK;

/* The funnel of @who, without making one and without counting as a use.  NULL: there is none. */
const struct funnel *funnel_known(const struct guard *guard, struct slice who) MUST_CHECK;

/* Make @funnel the one that was used last. */
void funnel_use(struct guard *guard, struct funnel *funnel, int64_t now_us);

/* Forget up to 16 idle funnels that have not been used for a minute. */
void funnel_forget_old(struct guard *guard, int64_t now_us);

/* When the oldest funnel can be forgotten, if it is idle then, in milliseconds of CLOCK_MONOTONIC;
 * INT64_MAX: there is no funnel. */
int64_t funnel_forget_ms(const struct guard *guard);

/* The time in microseconds until @n events can be had, by what is known; 0: now. */
int64_t funnel_wait_us(
    const struct guard *guard, const struct funnel *funnel, int64_t n, int64_t now_us);

/* How the limit stands, for an answer's headers: writes remaining and reset_us of @ret. */
void funnel_describe(const struct guard *guard, const struct funnel *funnel, int64_t now_us,
    struct limit_state *ret);

/* The verdict on a charge of @n events.  With GUARD_REFUSED *ret_retry_us is the time until the
 * charge could be admitted, -1 for never; otherwise 0. */
enum guard_verdict funnel_judge(const struct guard *guard, const struct funnel *funnel, int64_t n,
    int64_t now_us, int64_t *ret_retry_us);

/* Take out all jobs that wait on @funnel, and return them as a list. */
struct storage_job *funnel_take_waiting(struct guard *guard, struct funnel *funnel) MUST_CHECK;

#endif

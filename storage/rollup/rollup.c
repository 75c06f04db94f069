#include "storage/rollup/rollup.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/deletion/work.h"
#include "storage/lock/leader.h"
#include "storage/log/close.h"
#include "storage/rollup/jobs.h"
#include "storage/rollup/pass.h"
#include "storage/rollup/rewrite.h"
#include "storage/rollup/status.h"
#include "storage/rollup/wish.h"
#include "storage/rollup/workers.h"
#include "storage/session/sessions.h"
#include "storage/time/units.h"
#include "storage/users/forget.h"

#define ASK_MS       2000  /* the longest wait for a connection, or for a small answer */
#define RETRY_MS     1000  /* a failed turn is tried again after so long */
#define FOLLOW_MS    10000 /* how often to look at what another process should have done by now */
#define WISH_LOOK_MS 50    /* how often to look at a wish */
#define SLEEP_MAX_MS (HOUR_S * 1000)
#define CATCH_UP_MS  2000 /* a pass on request waits so long for what was acknowledged before it */
#define CLOSE_MS     5000 /* how often to look for logs whose writers are gone */

struct rollup {
    struct core *core;
    struct leader *leader;
    pthread_t thread;
    struct rollup_jobs jobs;
    struct session session; /* leads to partition 0's server, which has the lock and the wish */
    struct rollup_workers *workers; /* in a cluster; NULL: one server has all partitions */
    struct session spread;          /* in a cluster: leads to all servers, by the dispatcher */
    struct dispatcher dispatcher;   /* the dispatcher of `spread` */
    struct sessions servers;        /* in a cluster: one to each server, for what each is asked */
    struct leadership leadership;   /* for the turn at hand */
    int64_t clean_token;            /* all partitions were looked at under this token of the lock */
    bool owes_pass;                 /* a wish was found that no pass has fulfilled yet */
    bool wishing;        /* the jobs that have begun wait for a pass of another process */
    int64_t wishes_done; /* so many wishes had been fulfilled when this process wished for it */
    struct log_closer closer;
    struct aof_rewriter rewriter;
    struct deletion_work deletion;
    int64_t close_ms; /* when `closer` looks for silent logs next, CLOCK_MONOTONIC */
};

static bool rollup_connected(struct rollup *r)
{
    return session_reach(&r->session, r->core, monotonic_ms() + ASK_MS);
}

/* The session for what is asked of all partitions.  NULL: there is none. */
static struct session *session_of_all(struct rollup *r)
{
    if (r->workers == NULL) {
        return &r->session;
    }
    return session_by_dispatcher(&r->spread, r->core) ? &r->spread : NULL;
}

/* Read how far all partitions are.  STORAGE_DOWN: not now. */
static enum storage_err read_status(struct rollup *r, struct rollup_job *ret)
{
    struct session *session = session_of_all(r);
    bool lost = false;
    enum storage_err err =
        session == NULL ? STORAGE_DOWN
                        : rollup_status_read(r->core, session, monotonic_ms() + ASK_MS, ret, &lost);
    if (lost) {
        session_lost(session);
        err = STORAGE_DOWN;
    }
    return err;
}

/* ---- leading ---- */

static bool still_mine(void *data)
{
    struct rollup *r = data;
    return !atomic_load(&r->core->stopping) &&
           leader_token(r->leader) == r->leadership.fencing_token;
}

static void rollup_fenced(void *data, int64_t token)
{
    leader_outranked(((struct rollup *)data)->leader, token);
}

/* Do all passes of a partition that are due.  False: something is left, try again later. */
static bool do_passes(struct rollup *r, unsigned partition, struct session *session)
{
    unsigned voids = 0;
    while (voids < 2 && still_mine(r)) {
        switch (rollup_pass(r->core, session, partition, &r->leadership)) {
        case PASS_NOTHING:
            return true;
        case PASS_DONE:
            voids = 0;
            break;
        case PASS_VOID: /* once may happen, as another process took over; twice is worth a pause */
            voids++;
            break;
        case PASS_LOST:
            session_lost(session);
            return false;
        case PASS_FENCED:
        case PASS_FAILED:
            return false;
        }
    }
    return false;
}

/* Bring one partition up to date; a rollup_work_fn. */
static bool roll_partition(void *data, unsigned partition, struct session *session)
{
    struct rollup *r = data;
    bool ok = do_passes(r, partition, session);
    if (session->redis != NULL && still_mine(r) && !activity_sweep(r->core, session, partition)) {
        session_lost(session);
        ok = false;
    }
    return ok;
}

/* Bring all partitions up to date.  False: something is left. */
static bool roll_all(struct rollup *r)
{
    bool ok = true;
    if (r->workers != NULL) {
        return rollup_workers_run(r->workers, roll_partition, r);
    }
    for (unsigned p = 0; r->session.redis != NULL && p < r->core->partitions.n; p++) {
        ok = roll_partition(r, p, &r->session) && ok;
    }
    return ok && r->session.redis != NULL;
}

/* When the next pass of any partition is due, UTC seconds, by what is known of the partitions. */
static int64_t next_due_s(struct core *core)
{
    int64_t due_s = INT64_MAX;
    for (unsigned p = 0; p < core->partitions.n; p++) {
        struct partition_view view = core_view(core, p);
        int64_t at_s = rollup_due_s(&core->sites, &view.state);
        due_s = at_s < due_s ? at_s : due_s;
    }
    return due_s;
}

/* A pass on request is over: answer the jobs begun, and take the wish @wish away; "" is none.  A
 * server may have gone back without anybody's notice.  So all partitions are asked whether they
 * have what was due at @now_s.  False: a partition has not, or Redis is away; the jobs wait.  After
 * any other error the jobs get that error, and the wish stays. */
static bool tell_asked(struct rollup *r, const char *wish, int64_t now_s)
{
    struct rollup_job result;
    enum storage_err err = read_status(r, &result);
    if (err == STORAGE_DOWN || (err == STORAGE_OK && next_due_s(r->core) - PASS_GRACE_S <= now_s)) {
        return false;
    }
    if (err == STORAGE_OK && wish[0] != '\0') {
        wish_fulfil(r->core, &r->session, wish);
    }
    rollup_jobs_finish(&r->jobs, err, &result);
    return true;
}

/* Do everything that is due, as the leader; with @asked also buckets that have ended just now.
 * False: try again soon. */
static bool rollup_lead(struct rollup *r, bool asked)
{
    char wish[WISH_ID_SIZE] = "";
    r->leadership.grace_s = asked ? 0 : PASS_GRACE_S;
    if (!atomic_load(&r->core->ready) || !rollup_connected(r)) {
        return false;
    }
    unsigned changes = servers_changes(r->core);
    int64_t now_s = redis_clock_ms(&r->core->clock) / 1000;
    if (asked) {
        rollup_jobs_begin(&r->jobs);
        wish_read(r->core, &r->session, wish);
        /* The pass shall find what was acknowledged.  What is counted later goes into the closed
         * buckets as well. */
        (void)core_catch_up(r->core, monotonic_us(), monotonic_ms() + CATCH_UP_MS);
    }
    /* A server that was replaced meanwhile may have lost what the pass had done there. */
    bool ok = roll_all(r) && session_is_current(&r->session) &&
              servers_changes(r->core) == changes && (!asked || tell_asked(r, wish, now_s));
    r->owes_pass = r->owes_pass && !ok;
    return ok;
}

/* Milliseconds until the next pass is due, by what is known of the partitions. */
static int64_t due_in_ms(struct core *core)
{
    int64_t now_ms = redis_clock_ms(&core->clock);
    if (now_ms == 0) {
        return RETRY_MS;
    }
    int64_t in_ms = next_due_s(core) * 1000 - now_ms;
    in_ms = in_ms < SLEEP_MAX_MS ? in_ms : SLEEP_MAX_MS;
    return in_ms > 0 ? in_ms : 0;
}

/* What a leader does every few seconds: close the logs of writers that are gone, have the
 * append-only file rewritten.  Returns how long to wait before the next time. */
static int64_t keep_house(struct rollup *r)
{
    int64_t now_ms = monotonic_ms();
    if (now_ms < r->close_ms) {
        return r->close_ms - now_ms;
    }
    if (!atomic_load(&r->core->ready) || !rollup_connected(r) || !still_mine(r)) {
        return RETRY_MS;
    }
    bool ok = log_close_silent(&r->closer, r->core, &r->session, now_ms + ASK_MS) ||
              r->workers != NULL; /* in a cluster the closer has connections of its own */
    if (r->workers != NULL) {
        aof_rewrite_look_each(&r->rewriter, r->core, &r->servers, &r->leadership);
    } else if (!ok || !aof_rewrite_look(&r->rewriter, r->core, &r->session, 0)) {
        session_lost(&r->session);
    }
    r->close_ms = now_ms + CLOSE_MS;
    return CLOSE_MS;
}

/* A leader's turn, under the fencing token @token.  Returns how long to sleep. */
static int64_t turn_of_leader(struct rollup *r, int64_t token)
{
    r->owes_pass = leader_take_wish(r->leader) || r->owes_pass;
    bool asked = r->owes_pass || rollup_jobs_any(&r->jobs);
    r->leadership.fencing_token = token;
    r->wishing = false;
    int64_t wait_ms = due_in_ms(r->core);
    if (asked || r->clean_token != token || wait_ms == 0) {
        bool ok = rollup_lead(r, asked);
        r->clean_token = ok ? token : 0; /* a pass may have been left open */
        wait_ms = ok ? due_in_ms(r->core) : RETRY_MS;
        wait_ms = wait_ms == 0 ? RETRY_MS : wait_ms;
    }
    int64_t close_in_ms = keep_house(r);
    return close_in_ms < wait_ms ? close_in_ms : wait_ms;
}

/* ---- while another process leads ---- */

/* Jobs wait for a pass of the process that leads.  Returns how long to sleep. */
static int64_t await_other(struct rollup *r)
{
    if (atomic_load(&r->core->refusing)) {
        rollup_jobs_begin(&r->jobs);
        rollup_jobs_finish(&r->jobs, STORAGE_DOWN, NULL);
        return RETRY_MS;
    }
    if (!rollup_connected(r)) {
        return RETRY_MS;
    }
    /* A job that came after a wish waits for the next one.  If all jobs that the wish was made for
     * have given up, the next wish is made now. */
    if (!r->wishing || !rollup_jobs_begun(&r->jobs)) {
        rollup_jobs_begin(&r->jobs);
        r->wishing = wish_make(r->core, &r->session, &r->wishes_done);
        return WISH_LOOK_MS;
    }
    enum wish_fate fate = wish_look(r->core, &r->session, r->wishes_done);
    if (fate == WISH_FULFILLED) {
        (void)tell_asked(r, "", 0);
    }
    r->wishing = fate == WISH_STANDS; /* a wish that was lost is made again */
    return WISH_LOOK_MS;
}

static int64_t turn_of_follower(struct rollup *r)
{
    if (rollup_jobs_any(&r->jobs)) {
        return await_other(r);
    }
    r->wishing = false;
    int64_t wait_ms = due_in_ms(r->core);
    if (wait_ms == 0 && atomic_load(&r->core->ready) &&
        rollup_connected(r)) { /* the metrics of how far rollups lag need the states */
        struct rollup_job ignored;
        (void)read_status(r, &ignored);
        wait_ms = due_in_ms(r->core);
    }
    return wait_ms == 0 ? FOLLOW_MS : wait_ms;
}

/* ---- both ---- */

/* Look at what is to be deleted.  The leader, whose token is @token, does the work; a follower has
 * @token 0.  Returns how long to sleep. */
static int64_t work_at_deletions(struct rollup *r, int64_t token)
{
    bool lost = false;
    bool can = atomic_load(&r->core->ready) && rollup_connected(r);
    struct session *session = can ? session_of_all(r) : NULL;
    if (session == NULL) {
        return RETRY_MS;
    }
    int64_t wait_ms = deletion_work(&r->deletion, r->core, session, token, &lost);
    if (lost) {
        session_lost(session);
    }
    if (r->deletion.in_doubt) {
        leader_outranked(r->leader, token + 1);
    }
    return wait_ms;
}

/* ---- the thread ---- */

static void *rollup_main(void *argument)
{
    struct rollup *r = argument;
    while (!atomic_load(&r->core->stopping)) {
        int64_t token = leader_token(r->leader);
        period_secrets_sweep(&r->core->period_secrets, redis_clock_ms(&r->core->clock));
        int64_t wait_ms = token != 0 ? turn_of_leader(r, token) : turn_of_follower(r);
        int64_t deletion_ms = work_at_deletions(r, token);
        wait_ms = deletion_ms < wait_ms ? deletion_ms : wait_ms;
        wake_sleep(&r->core->rollup_wake, monotonic_ms() + wait_ms);
    }
    session_close(&r->session);
    dispatcher_release(&r->dispatcher);
    sessions_release(&r->servers);
    rollup_workers_free(r->workers);
    log_closer_release(&r->closer);
    return NULL;
}

static int64_t take_late(void *data, struct storage_job **ret_late)
{
    return rollup_jobs_take_late(&((struct rollup *)data)->jobs, monotonic_ms(), ret_late);
}

/* Prepare what is needed if several servers share the partitions.  False: out of memory. */
static bool begin_spread(struct rollup *r)
{
    const struct redis_look look = {core_runs, r->core, ASK_MS};
    if (!r->core->is_spread) {
        return true;
    }
    dispatcher_init(&r->dispatcher, r->core, &look);
    sessions_init(&r->servers, r->core, look);
    r->spread.dispatcher = &r->dispatcher;
    r->workers = rollup_workers_new(r->core);
    return r->workers != NULL;
}

struct rollup *rollup_start(struct core *core, struct leader *leader)
{
    struct rollup *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return NULL;
    }
    r->core = core;
    r->session.look = (struct redis_look){core_runs, core, 0};
    r->leader = leader;
    r->leadership =
        (struct leadership){.still_mine = still_mine, .fenced = rollup_fenced, .data = r};
    rollup_jobs_init(&r->jobs);
    if (!begin_spread(r) || pthread_create(&r->thread, NULL, rollup_main, r) != 0) {
        rollup_workers_free(r->workers);
        rollup_jobs_release(&r->jobs);
        free(r);
        return NULL;
    }
    leader_set_chore(leader, (struct leader_chore){take_late, r});
    return r;
}

bool rollup_submit(struct rollup *r, struct storage_job *job, enum storage_err *ret_err)
{
    *ret_err = rollup_jobs_add(&r->jobs, job) ? STORAGE_OK : STORAGE_SHUTDOWN;
    if (*ret_err == STORAGE_OK) {
        leader_nudge(r->leader); /* the leader's thread answers the job at its deadline */
        wake_up(&r->core->rollup_wake);
    }
    return *ret_err == STORAGE_OK;
}

void rollup_drain(struct rollup *r)
{
    rollup_jobs_close(&r->jobs);
}

void rollup_stop(struct rollup *r)
{
    rollup_jobs_close(&r->jobs);
    wake_up(&r->core->rollup_wake); /* core->stopping is set */
    pthread_join(r->thread, NULL);
    leader_set_chore(r->leader, (struct leader_chore){NULL, NULL});
    rollup_jobs_release(&r->jobs);
    free(r);
}

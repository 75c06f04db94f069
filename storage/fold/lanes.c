#include "storage/fold/lanes.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/fold/cut.h"
#include "storage/fold/pass_by.h"
#include "storage/fold/streams.h"
#include "storage/log/close.h"

/* A lane's last transaction takes a step, and pass_by() behind the lanes another one. */
_Static_assert(HEADS_AGE_MS + 2 * FOLD_STEP_MS < LOG_CURSOR_KEPT_MS,
    "a cursor outlives each head that a batch rests on");

/* A third lane to one server counts at most 5 % more arrays a second on two processors, and its
 * scratch memory is 5 MB. */
#define LANES_OF_ONE 2
#define BESIDE_ROWS  2000 /* a batch of fewer rows is not worth a second lane */

struct lane {
    struct lane *next;
    const struct lanes *lanes;
    struct session session; /* the first of two lanes to one server uses the round's instead */
    struct heads heads;     /* only the second of two lanes to one server uses its own */
    struct transaction *tx; /* owned */
    /* What `tx` remembers holds for this connection of the session and this version of the
     * topology: in another version a partition may have been on another server. */
    uint64_t n_opened;
    unsigned version;

    /* Of the batch at hand. */
    bool has_work, has_thread;
    pthread_t thread;
    struct cutter cutter;
    struct cut_left left;         /* in a cluster: the partitions of the lane's server */
    struct session *used_session; /* the lane counts over this connection */
    struct heads *used_heads;     /* the heads of transaction_run() */
    int trim;                     /* the last transaction cuts this log: see transaction_run() */
    struct fold_result result;
};

static void lane_free(struct lane *lane)
{
    session_close(&lane->session);
    transaction_free(lane->tx);
    heads_release(&lane->heads);
    free(lane);
}

/* NULL: out of memory. */
static struct lane *lane_new(struct lanes *lanes)
{
    struct lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return NULL;
    }
    lane->lanes = lanes;
    lane->tx = transaction_new(lanes->core, lanes->seen_fold, lanes->shared);
    if (lane->tx == NULL) {
        free(lane);
        return NULL;
    }
    lane->session.look = (struct redis_look){core_runs, lanes->core, FOLD_SILENCE_MS};
    lane->next = lanes->all;
    lanes->all = lane;
    return lane;
}

bool lanes_init(struct lanes *lanes, struct core *core, struct seen_fold *seen_fold,
    struct shared_memory *shared)
{
    bool ok = true;
    *lanes = (struct lanes){.core = core, .seen_fold = seen_fold, .shared = shared};
    for (unsigned i = 0; ok && !core->is_spread && i < LANES_OF_ONE; i++) {
        ok = lane_new(lanes) != NULL;
    }
    return ok;
}

void lanes_forget(struct lanes *lanes)
{
    for (struct lane *lane = lanes->all; lane != NULL; lane = lane->next) {
        if (!lanes->core->is_spread) {
            session_close(&lane->session);
            transaction_forget(lane->tx);
        }
    }
}

void lanes_release(struct lanes *lanes)
{
    while (lanes->all != NULL) {
        struct lane *lane = lanes->all;
        lanes->all = lane->next;
        lane_free(lane);
    }
}

/* ---- a lane at work ---- */

static bool lane_connect(struct lane *lane)
{
    struct core *core = lane->lanes->core;
    unsigned version = core->is_spread ? topology_version(core->topology) : 0;
    if (!session_reach(&lane->session, core, monotonic_ms() + FOLD_CONNECT_MS)) {
        return false;
    }
    if (lane->n_opened != lane->session.n_opened || lane->version != version) {
        transaction_forget(lane->tx);
        lane->n_opened = lane->session.n_opened;
        lane->version = version;
    }
    return true;
}

/* Give the lane its work: the partitions of @batch that are in @left, beginning with @first.
 * @heads are those of transaction_run(). */
static void lane_begin(struct lane *lane, const struct batch *batch, struct cut_left *left,
    unsigned first, struct heads *heads)
{
    lane->has_work = true;
    lane->used_session = &lane->session;
    lane->used_heads = heads;
    lane->trim = -1;
    cutter_begin(&lane->cutter, lane->lanes->core, batch, left, first);
}

/* Count the lane's work, transaction by transaction. */
static void lane_count(struct lane *lane)
{
    const struct lanes *lanes = lane->lanes;
    const struct batch *batch = lane->cutter.batch;
    struct cut cuts[CUTS_MAX];
    const uint32_t goal_us = batch_has_many(batch) ? PACE_GOAL_SHORT_US : PACE_GOAL_US;
    bool last = false;
    lane->result.end = FOLD_DONE;
    while (lane->result.end == FOLD_DONE && !last) {
        unsigned n = cutter_next(&lane->cutter, transaction_pace(lane->tx), goal_us, cuts, &last);
        if (n == 0) {
            break;
        }
        lane->result =
            transaction_run(lane->tx, lane->used_session, batch, (struct fold_cuts){cuts, n},
                last ? lane->trim : -1, monotonic_ms() + FOLD_STEP_MS, lane->used_heads);
        if (lane->result.end == FOLD_DONE && lanes->moved != NULL && !lanes->core->is_spread) {
            lanes->moved(lanes->moved_data);
        }
    }
}

/* Redis wakes a thread of the fold by an answer, and has more to do.  Where both are on one
 * processor, the thread is to wait for another processor.  Source: sched(7), SCHED_BATCH. */
static void give_way_to_redis(void)
{
    struct sched_param none = {0};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

static void *lane_main(void *argument)
{
    struct lane *lane = argument;
    bool is_own = lane->used_session == &lane->session;
    lane->result = (struct fold_result){.end = FOLD_LOST};
    if (!lane->lanes->core->is_spread) {
        give_way_to_redis();
    }
    /* To one server the lane is connected already.  A new connection might lead to another one. */
    if (!lane->lanes->core->is_spread || lane_connect(lane)) {
        lane_count(lane);
    }
    if (is_own && lane->result.end == FOLD_LOST) {
        session_lost(&lane->session);
    }
    return NULL;
}

/* Have the work of all lanes done, that of the first one on this thread.  Returns the worst of
 * their results. */
static struct fold_result lanes_run(struct lanes *lanes)
{
    struct fold_result worst = {.end = FOLD_DONE};
    bool has_first = false;
    for (struct lane *lane = lanes->all; lane != NULL; lane = lane->next) {
        if (lane->has_work) {
            lane->has_thread =
                has_first && pthread_create(&lane->thread, NULL, lane_main, lane) == 0;
            has_first = true;
        }
    }
    for (struct lane *lane = lanes->all; lane != NULL; lane = lane->next) {
        if (lane->has_work && !lane->has_thread) {
            (void)lane_main(lane);
        }
    }
    for (struct lane *lane = lanes->all; lane != NULL; lane = lane->next) {
        if (lane->has_work && lane->has_thread) {
            (void)pthread_join(lane->thread, NULL);
        }
        if (lane->has_work && lane->result.end > worst.end) {
            worst = lane->result;
        }
    }
    return worst;
}

/* ---- one server ---- */

static struct fold_result count_on_one(struct lanes *lanes, struct session *session,
    const struct batch *batch, struct heads *heads, int trim)
{
    struct cut_left left = {0};
    struct lane *first = lanes->all;
    assert(first != NULL && first->next != NULL); /* made by lanes_init() */
    struct lane *second = first->next;
    const unsigned n = lanes->core->partitions.n;
    bool both = batch->n_rows >= BESIDE_ROWS && n > 1 && lane_connect(second) &&
                session_is_current(session); /* else the sessions may lead to two servers */
    /* Each lane takes its first partition here, before another thread runs.  So the first lane
     * always has a transaction.  The round's goal rests on the heads which that one reads. */
    unsigned from = both ? cut_first(batch, n) : 0;
    cut_all_left(&left, lanes->core);
    lane_begin(first, batch, &left, from, heads);
    first->used_session = session;
    first->trim = both ? -1 : trim;
    if (both) {
        lane_begin(second, batch, &left, from + n / 2, &second->heads);
    }
    struct fold_result result = lanes_run(lanes);
    /* Only now both lanes have counted the log. */
    if (both && result.end == FOLD_DONE && trim >= 0) {
        const struct batch_log *log = &batch->logs[trim];
        enum redis_status status =
            stream_trim(lanes->core, session, monotonic_ms() + FOLD_STEP_MS, log->id, log->to);
        result.end = status == REDIS_OK_STATUS ? FOLD_DONE : FOLD_LOST;
    }
    return result;
}

/* ---- a cluster ---- */

/* The lane of the server @node, made if there is none.  NULL: out of memory. */
static struct lane *lane_of(struct lanes *lanes, const struct cluster_node *node)
{
    struct lane *lane = lanes->all;
    while (lane != NULL && !cluster_node_equal(&lane->session.server.node, node)) {
        lane = lane->next;
    }
    if (lane == NULL && (lane = lane_new(lanes)) != NULL) {
        lane->session.server.is_named = true;
        lane->session.server.node = *node;
    }
    return lane;
}

/* Free the lanes of servers that own no partition any more. */
static void drop_left(struct lanes *lanes)
{
    struct lane **at = &lanes->all;
    while (*at != NULL) {
        struct lane *lane = *at;
        if (topology_owns(lanes->core->topology, &lane->session.server.node)) {
            at = &lane->next;
        } else {
            *at = lane->next;
            lane_free(lane);
        }
    }
}

/* Give each partition that has tasks in the batch to the lane of its server. */
static enum storage_err share_out(struct lanes *lanes, const struct batch *batch)
{
    drop_left(lanes);
    for (unsigned p = 0; p < lanes->core->partitions.n; p++) {
        struct cluster_node owner;
        if (batch->tasks[p].n == 0) {
            continue;
        }
        if (!topology_owner(lanes->core->topology, p, &owner)) {
            return STORAGE_DOWN;
        }
        struct lane *lane = lane_of(lanes, &owner);
        if (lane == NULL) {
            return STORAGE_NOMEM;
        }
        if (!lane->has_work) {
            lane->left = (struct cut_left){0};
        }
        lane->has_work = true;
        atomic_store(&lane->left.has[p], true);
    }
    return STORAGE_OK;
}

static struct fold_result count_spread(
    struct lanes *lanes, struct session *session, const struct batch *batch, struct heads *heads)
{
    enum storage_err err = share_out(lanes, batch);
    if (err != STORAGE_OK) {
        return fold_failed(err);
    }
    for (struct lane *lane = lanes->all; lane != NULL; lane = lane->next) {
        if (lane->has_work) {
            lane_begin(lane, batch, &lane->left, 0, heads);
        }
    }
    struct fold_result result = lanes_run(lanes);
    return result.end != FOLD_DONE
               ? result
               : pass_by(lanes->core, session, batch, heads, monotonic_ms() + FOLD_STEP_MS);
}

struct fold_result lanes_count(struct lanes *lanes, struct session *session,
    const struct batch *batch, struct heads *heads, int trim)
{
    for (struct lane *lane = lanes->all; lane != NULL; lane = lane->next) {
        lane->has_work = false;
    }
    return lanes->core->is_spread ? count_spread(lanes, session, batch, heads)
                                  : count_on_one(lanes, session, batch, heads, trim);
}

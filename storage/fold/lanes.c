#include "storage/fold/lanes.h"

#include <pthread.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/fold/threads.h"
#include "storage/log/close.h"

_Static_assert(
    HEADS_AGE_MS < LOG_CURSOR_KEPT_MS, "a cursor outlives each head that a lane rests on");

struct lane {
    struct lane *next;
    struct session session;
    struct transaction *tx;
    uint64_t n_opened; /* the connection of which tx->memory is true.. */
    unsigned version;  /* ..and the topology: a partition may have been away meanwhile */

    /* Of the batch at hand. */
    struct part_set set;
    bool has_work, has_thread;
    pthread_t thread;
    const struct batch *batch;
    struct heads *heads;
    int64_t deadline_ms;
    enum fold_end end;
    enum storage_err err;
    uint32_t log;
};

void lanes_init(struct lanes *lanes, struct core *core, struct seen_fold *seen_fold,
    struct shared_memory *shared)
{
    *lanes = (struct lanes){.core = core, .seen_fold = seen_fold, .shared = shared};
}

static void lane_free(struct lane *lane)
{
    session_close(&lane->session);
    transaction_free(lane->tx);
    free(lane);
}

void lanes_release(struct lanes *lanes)
{
    while (lanes->lanes != NULL) {
        struct lane *lane = lanes->lanes;
        lanes->lanes = lane->next;
        lane_free(lane);
    }
}

/* ---- whose a partition is ---- */

static struct lane *lane_new(struct lanes *lanes, const struct cluster_node *node)
{
    struct lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return NULL;
    }
    lane->tx = transaction_new(lanes->core, lanes->seen_fold, lanes->shared);
    if (lane->tx == NULL) {
        free(lane);
        return NULL;
    }
    lane->session.look = (struct redis_look){core_runs, lanes->core};
    lane->session.server.is_named = true;
    lane->session.server.node = *node;
    lane->next = lanes->lanes;
    lanes->lanes = lane;
    return lane;
}

/* NULL: no memory. */
static struct lane *lane_of(struct lanes *lanes, const struct cluster_node *node)
{
    for (struct lane *lane = lanes->lanes; lane != NULL; lane = lane->next) {
        if (cluster_node_equal(&lane->session.server.node, node)) {
            return lane;
        }
    }
    return lane_new(lanes, node);
}

/* Lanes of servers that have nothing any more. */
static void drop_left(struct lanes *lanes)
{
    struct lane **at = &lanes->lanes;
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

/* Give each partition of @set to its lane. */
static enum storage_err share_out(struct lanes *lanes, const struct part_set *set)
{
    drop_left(lanes);
    for (struct lane *lane = lanes->lanes; lane != NULL; lane = lane->next) {
        lane->has_work = false;
        lane->set = (struct part_set){.words = {0}};
    }
    for (unsigned p = 0; p < lanes->core->partitions.n; p++) {
        struct cluster_node owner;
        if (!part_set_has(set, p)) {
            continue;
        }
        if (!topology_owner(lanes->core->topology, p, &owner)) {
            return STORAGE_DOWN;
        }
        struct lane *lane = lane_of(lanes, &owner);
        if (lane == NULL) {
            return STORAGE_NOMEM;
        }
        lane->has_work = true;
        part_set_add(&lane->set, p);
    }
    return STORAGE_OK;
}

/* ---- a lane at work ---- */

static bool lane_connect(struct lane *lane, struct core *core)
{
    unsigned version = topology_version(core->topology);
    if (!session_is_current(&lane->session)) {
        session_close(&lane->session);
        if (!threads_connect(core, &lane->session)) {
            return false;
        }
    }
    if (lane->n_opened != lane->session.n_opened || lane->version != version) {
        transaction_forget(lane->tx);
        lane->n_opened = lane->session.n_opened;
        lane->version = version;
    }
    return true;
}

static void lane_lost(struct lane *lane)
{
    session_lost(&lane->session);
    transaction_forget(lane->tx);
}

/* What the next transaction counts; none at the end. */
static struct fold_cuts next_cuts(
    const struct lane *lane, struct cutter *cutter, struct cut *cuts, bool *no_more)
{
    if (*no_more) {
        return (struct fold_cuts){.n = 0};
    }
    unsigned n = cutter_next(cutter, transaction_limit_us(lane->tx, lane->batch), cuts, no_more);
    return (struct fold_cuts){cuts, n};
}

static void lane_count(struct lane *lane, struct core *core)
{
    struct cutter cutter;
    struct cut cuts[2][CUTS_MAX];
    bool no_more = false;
    lane->end = FOLD_LOST;
    lane->err = STORAGE_OK;
    if (!lane_connect(lane, core)) {
        return;
    }
    cutter_begin(&cutter, core, lane->batch);
    cutter.sketches = transaction_sketches(lane->tx);
    cutter.only = &lane->set;
    struct fold_cuts next = next_cuts(lane, &cutter, cuts[0], &no_more);
    lane->end = FOLD_DONE;
    for (unsigned i = 1; lane->end == FOLD_DONE && next.n > 0; i++) {
        struct fold_cuts now = next;
        next = next_cuts(lane, &cutter, cuts[i % 2], &no_more);
        lane->end = transaction_run(lane->tx, &lane->session, lane->batch, now, next, -1,
            lane->deadline_ms, lane->heads, &lane->log, &lane->err);
    }
    if (lane->end == FOLD_LOST) {
        lane_lost(lane);
    }
}

static void *lane_main(void *argument)
{
    struct lane *lane = argument;
    lane_count(lane, lane->session.core);
    return NULL;
}

/* The worst end of all: one that is lost says nothing of what it did. */
static enum fold_end worst_end(
    const struct lanes *lanes, uint32_t *ret_log, enum storage_err *ret_err)
{
    static const int badness[] = {
        [FOLD_DONE] = 0, [FOLD_STALE] = 3, [FOLD_LOST] = 2, [FOLD_ERR] = 1};
    enum fold_end end = FOLD_DONE;
    for (const struct lane *lane = lanes->lanes; lane != NULL; lane = lane->next) {
        if (lane->has_work && badness[lane->end] > badness[end]) {
            end = lane->end;
            *ret_log = lane->log;
            *ret_err = lane->err;
        }
    }
    return end;
}

enum fold_end lanes_count(struct lanes *lanes, const struct batch *batch,
    const struct part_set *set, struct heads *heads, int64_t deadline_ms, uint32_t *ret_log,
    enum storage_err *ret_err)
{
    struct lane *own = NULL; /* the last one is run on this thread */
    *ret_err = share_out(lanes, set);
    if (*ret_err != STORAGE_OK) {
        return FOLD_ERR;
    }
    for (struct lane *lane = lanes->lanes; lane != NULL; lane = lane->next) {
        if (!lane->has_work) {
            continue;
        }
        lane->batch = batch;
        lane->heads = heads;
        lane->deadline_ms = deadline_ms;
        lane->session.core = lanes->core;
        if (own != NULL) {
            own->has_thread = pthread_create(&own->thread, NULL, lane_main, own) == 0;
            if (!own->has_thread) {
                lane_count(own, lanes->core);
            }
        }
        own = lane;
    }
    if (own != NULL) {
        own->has_thread = false;
        lane_count(own, lanes->core);
    }
    for (struct lane *lane = lanes->lanes; lane != NULL; lane = lane->next) {
        if (lane->has_work && lane->has_thread) {
            (void)pthread_join(lane->thread, NULL);
        }
    }
    return worst_end(lanes, ret_log, ret_err);
}

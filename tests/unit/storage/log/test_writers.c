/* Several writers of one process, whose threads look at each other. */
#include "storage/log/writers.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/core/core.h"
#include "tests/lib/stand_in.h"

TestSuite(writers, .timeout = 60);

#define PLACES  4
#define LONG_MS 2000 /* a writer tries to connect twice a second at least */

static _Atomic unsigned n_tried, n_tried_later, n_closed, n_done;

static bool no_connection(void)
{
    atomic_fetch_add(atomic_load(&n_closed) == 0 ? &n_tried : &n_tried_later, 1);
    return false;
}

/* Its writer is about to be freed.  No thread may look at it any more. */
static void is_closed(void)
{
    int64_t until_ms = monotonic_ms() + LONG_MS;
    if (atomic_fetch_add(&n_closed, 1) > 0) {
        return;
    }
    while (atomic_load(&n_tried_later) == 0 && monotonic_ms() < until_ms) {
        (void)poll(NULL, 0, 5);
    }
}

static void is_done(struct storage_job *job)
{
    (void)job;
    atomic_fetch_add(&n_done, 1);
}

static int64_t topology_now_ms(void *data)
{
    (void)data;
    return monotonic_ms();
}

static struct core *core_of_a_cluster(void)
{
    static const struct topology_io no_io = {.now_ms = topology_now_ms};
    struct core *core = calloc(1, sizeof(*core));
    cr_assert_not_null(core);
    core_init(core);
    partitions_make(PLACES, &core->partitions);
    core->is_spread = true;
    core->n_logs = PLACES;
    cr_assert_null(redis_url_parse("redis-cluster://127.0.0.1:1", &core->url));
    core->topology = topology_new(&core->url, &core->partitions, &no_io, NULL);
    cr_assert_not_null(core->topology);
    return core;
}

static struct request_key keys[PLACES];
static struct storage_job jobs[PLACES];

/* Submit a request of @cost events whose key leads to place @i, where a writer is started. */
static enum storage_err submit(struct writers *writers, unsigned i, size_t cost)
{
    enum storage_err err;
    keys[i].key.bytes[1] = (unsigned char)i;
    jobs[i] = (struct storage_job){.op = STORAGE_WRITE,
        .cost = cost,
        .deadline_ms = INT64_MAX,
        .done = is_done,
        .u.write = {.keyed = &keys[i]}};
    bool taken = writers_submit(writers, &jobs[i], &err);
    cr_expect_eq(taken, err == STORAGE_OK);
    return err;
}

Test(writers, none_is_freed_while_others_run)
{
    struct core *core = core_of_a_cluster();
    struct unfolded unfolded;
    unsigned n_taken = 0;
    stand_in.connect = no_connection;
    stand_in.closed = is_closed;
    unfolded_init(&unfolded, &core->stats);
    struct writers *writers = writers_start(core, &unfolded);
    cr_assert_not_null(writers);
    for (unsigned i = 0; i < PLACES; i++) {
        n_taken += submit(writers, i, 1) == STORAGE_OK;
    }
    while (atomic_load(&n_tried) < PLACES) {
        (void)poll(NULL, 0, 1);
    }
    writers_stop(writers);
    cr_expect_eq(n_closed, PLACES);
    cr_expect_eq(n_tried_later, 0, "a writer was freed while another one ran");
    cr_expect_eq(n_done, n_taken);
    topology_free(core->topology);
    unfolded_release(&unfolded);
    core_release(core);
    free(core);
}

/* One queue for all: --queue says how much of it there is, and tallyd_queue_events how much is
 * used. */
Test(writers, what_waits_for_any_of_them_is_one_queue)
{
    struct core *core = core_of_a_cluster();
    struct unfolded unfolded;
    core->config.queue_events = 25;
    stand_in.connect = no_connection;
    unfolded_init(&unfolded, &core->stats);
    struct writers *writers = writers_start(core, &unfolded);
    cr_assert_not_null(writers);
    cr_expect_eq(submit(writers, 0, 10), STORAGE_OK);
    cr_expect_eq(submit(writers, 1, 10), STORAGE_OK);
    cr_expect_eq(atomic_load(&core->stats.queue_events), 20);
    cr_expect_eq(submit(writers, 2, 10), STORAGE_FULL);
    cr_expect_eq(submit(writers, 3, 5), STORAGE_OK);
    cr_expect_eq(atomic_load(&core->stats.queue_events), 25);
    writers_stop(writers);
    cr_expect_eq(n_done, 3);
    cr_expect_eq(atomic_load(&core->stats.queue_events), 0);
    topology_free(core->topology);
    unfolded_release(&unfolded);
    core_release(core);
    free(core);
}

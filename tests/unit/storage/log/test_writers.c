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

Test(writers, none_is_freed_while_others_run)
{
    struct core *core = core_of_a_cluster();
    struct unfolded unfolded;
    struct request_key keys[PLACES] = {{.answer = {NULL, 0}}};
    struct storage_job jobs[PLACES] = {{.op = STORAGE_WRITE}};
    enum storage_err err;
    unsigned n_taken = 0;
    stand_in.connect = no_connection;
    stand_in.closed = is_closed;
    unfolded_init(&unfolded, &core->stats);
    struct writers *writers = writers_start(core, &unfolded);
    cr_assert_not_null(writers);
    for (unsigned i = 0; i < PLACES; i++) { /* the key leads to place i */
        keys[i].key.bytes[1] = (unsigned char)i;
        jobs[i] = (struct storage_job){.op = STORAGE_WRITE,
            .cost = 1,
            .deadline_ms = INT64_MAX,
            .done = is_done,
            .u.write = {.keyed = &keys[i]}};
        /* The place's writer is started in any case. */
        n_taken += writers_submit(writers, &jobs[i], &err);
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

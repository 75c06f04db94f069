/* Several writers of one process, whose threads look at each other. */
#include "storage/log/writers.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/cluster/topology.h"
#include "storage/core/core.h"
#include "storage/log/writer.h"
#include "tests/lib/stand_in.h"
#include "tests/unit/storage/cluster/fake_cluster.h"

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
    core->topology = topology_new(&core->url, core->partitions.n, &no_io, NULL);
    cr_assert_not_null(core->topology);
    return core;
}

static struct request_key keys[PLACES];
static struct storage_job jobs[PLACES];

/* Submit request @i, of @cost events, whose key is made. */
static enum storage_err submit_keyed(struct writers *writers, unsigned i, size_t cost)
{
    jobs[i] = (struct storage_job){.op = STORAGE_WRITE,
        .cost = cost,
        .deadline_ms = INT64_MAX,
        .done = is_done,
        .u.write = {.keyed = &keys[i]}};
    return writers_submit(writers, &jobs[i]);
}

/* The same, with a key that leads to place @i, where a writer is started. */
static enum storage_err submit(struct writers *writers, unsigned i, size_t cost)
{
    keys[i].key.bytes[1] = (unsigned char)i;
    return submit_keyed(writers, i, cost);
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

static void count_closed(void)
{
    atomic_fetch_add(&n_closed, 1);
}

/* Requests without a key stay where they are, while no place is known to be better. */
Test(writers, none_is_started_where_its_server_is_away)
{
    struct core *core = core_of_a_cluster(); /* of which nobody knows a server */
    struct unfolded unfolded;
    stand_in.connect = no_connection;
    stand_in.closed = count_closed;
    unfolded_init(&unfolded, &core->stats);
    struct writers *writers = writers_start(core, &unfolded);
    cr_assert_not_null(writers);
    int64_t until_ms = monotonic_ms() + 5 * LONG_MS;
    while (!atomic_load(&core->refusing) && monotonic_ms() < until_ms) {
        (void)poll(NULL, 0, 5);
    }
    jobs[0] = (struct storage_job){.op = STORAGE_WRITE, .cost = 1, .done = is_done};
    cr_expect_eq(writers_submit(writers, &jobs[0]), STORAGE_DOWN);
    writers_stop(writers);
    cr_expect_eq(n_closed, 1, "%u writers were started", atomic_load(&n_closed));
    topology_free(core->topology);
    unfolded_release(&unfolded);
    core_release(core);
    free(core);
}

/* Wait for what core->refusing becomes; false: it has not within LONG_MS. */
static bool becomes(const struct core *core, bool refusing)
{
    int64_t until_ms = monotonic_ms() + LONG_MS;
    while (atomic_load(&core->refusing) != refusing && monotonic_ms() < until_ms) {
        (void)poll(NULL, 0, 5);
    }
    return atomic_load(&core->refusing) == refusing;
}

/* No writer has a connection.  Then only the topology tells whether anybody is to be waited for,
 * and what it says changes without the writers. */
Test(writers, the_last_news_of_the_servers_decide_whether_all_is_refused)
{
    struct core *core = core_of_a_cluster();
    struct unfolded unfolded;
    topology_free(core->topology);
    fake_start(1, "redis-cluster://n0");
    partitions_make(FAKE_PARTITIONS, &core->partitions);
    core->topology = fake.topology;
    core->n_logs = 1;
    core->config.queue_events = 25;
    fake_run(100);
    cr_assert_eq(topology_n_unserved(core->topology), 0);
    stand_in.connect = no_connection;
    unfolded_init(&unfolded, &core->stats);
    struct writers *writers = writers_start(core, &unfolded);
    cr_assert_not_null(writers);
    cr_assert_eq(submit(writers, 0, 1), STORAGE_OK);
    while (atomic_load(&n_done) == 0) { /* until the writer is away, and then has nothing to say */
        (void)poll(NULL, 0, 5);
    }
    cr_expect_not(atomic_load(&core->refusing), "the server may be there again");
    fake.nodes[0].silent = true;
    fake_hint(HINT_LOST, 0, "n0");
    fake_run(1000);
    cr_assert_eq(topology_n_unserved(core->topology), FAKE_PARTITIONS);
    cr_expect(becomes(core, true), "nothing is served any more");
    fake.nodes[0].silent = false;
    fake_run(10000);
    cr_assert_eq(topology_n_unserved(core->topology), 0);
    cr_expect(becomes(core, false), "all is served again");
    writers_stop(writers);
    fake_stop();
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
    keys[2].key.bytes[1] = 0; /* of place 0, too */
    cr_expect_eq(submit_keyed(writers, 2, 10), STORAGE_FULL);
    cr_expect_eq(submit_keyed(writers, 2, 5), STORAGE_OK);
    cr_expect_eq(atomic_load(&core->stats.queue_events), 25);
    cr_expect_eq(submit(writers, 3, 10), STORAGE_OK, "nothing waits at its place");
    cr_expect_eq(atomic_load(&core->stats.queue_events), 35);
    writers_stop(writers);
    cr_expect_eq(n_done, 4);
    cr_expect_eq(atomic_load(&core->stats.queue_events), 0);
    topology_free(core->topology);
    unfolded_release(&unfolded);
    core_release(core);
    free(core);
}

static void is_changed(void *data)
{
    (void)data;
}

static bool take_over(void *data, struct storage_job *job)
{
    return writer_submit(data, job, false) == STORAGE_OK;
}

/* What one writer gives to another was in the bound already, and is counted once; so are those who
 * are late. */
Test(writers, what_moves_is_not_refused_and_counted_once)
{
    struct core *core = core_of_a_cluster();
    struct unfolded unfolded;
    struct writers_share share = {.changed = is_changed, .elsewhere = take_over};
    const int64_t now_ms = monotonic_ms();
    core->config.queue_events = 25;
    stand_in.connect = no_connection;
    unfolded_init(&unfolded, &core->stats);
    struct writer *from = writer_start(core, 0, &unfolded, &share);
    struct writer *to = writer_start(core, 1, &unfolded, &share);
    cr_assert(from != NULL && to != NULL);
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = (struct storage_job){.op = STORAGE_WRITE,
            .cost = 10,
            .deadline_ms = i == 1 ? now_ms + 100 : INT64_MAX,
            .done = is_done};
    }
    cr_expect_eq(writer_submit(to, &jobs[0], true), STORAGE_OK);
    cr_expect_eq(writer_submit(from, &jobs[1], true), STORAGE_OK);
    cr_expect_eq(writer_submit(to, &jobs[2], false), STORAGE_OK, "beyond the bound");
    cr_expect_eq(atomic_load(&core->stats.queue_events), 30);
    int64_t until_ms = monotonic_ms() + LONG_MS;
    while (atomic_load(&n_done) == 0 && monotonic_ms() < until_ms) {
        (void)poll(NULL, 0, 5);
    }
    cr_expect_eq(jobs[1].err, STORAGE_LATE);
    cr_expect_eq(atomic_load(&core->stats.queue_events), 20);
    cr_expect_eq(atomic_load(&core->stats.queue_refused), 0);
    writer_stop_begin(from);
    writer_stop_begin(to);
    writer_stop_end(from);
    writer_stop_end(to);
    cr_expect_eq(n_done, 3);
    cr_expect_eq(atomic_load(&core->stats.queue_events), 0);
    writer_free(from);
    writer_free(to);
    topology_free(core->topology);
    unfolded_release(&unfolded);
    core_release(core);
    free(core);
}

static bool take_nothing(void *data, struct storage_job *job)
{
    (void)data;
    (void)job;
    return false;
}

static _Atomic int64_t done_ms;

static void note_when_done(struct storage_job *job)
{
    (void)job;
    atomic_store(&done_ms, monotonic_ms());
}

/* With --request-timeout 200ms a request has an answer 10 ms before, or is late.  Its body came
 * slowly: it is late before the one that waits in front of it.  A busy machine holds up one or
 * another: not most of them. */
Test(writers, a_request_is_answered_when_its_time_is_up)
{
    enum { N = 3, PATIENCE_MS = 60, LATE_MS = 20 };
    struct core *core = core_of_a_cluster();
    struct unfolded unfolded;
    unsigned n_late = 0;
    core->config.queue_events = 25;
    stand_in.connect = no_connection;
    unfolded_init(&unfolded, &core->stats);
    struct writers_share share = {.changed = is_changed, .elsewhere = take_nothing};
    struct writer *w = writer_start(core, 0, &unfolded, &share);
    cr_assert_not_null(w);
    (void)poll(NULL, 0, 350); /* from now on it sleeps: it tries to connect more and more seldom */
    struct storage_job first = {
        .op = STORAGE_WRITE, .cost = 10, .deadline_ms = INT64_MAX, .done = is_done};
    cr_assert_eq(writer_submit(w, &first, true), STORAGE_OK);
    for (unsigned i = 0; i < N; i++) {
        int64_t due_ms = monotonic_ms() + PATIENCE_MS;
        struct storage_job job = {
            .op = STORAGE_WRITE, .cost = 10, .deadline_ms = due_ms, .done = note_when_done};
        atomic_store(&done_ms, 0);
        cr_assert_eq(writer_submit(w, &job, true), STORAGE_OK);
        while (atomic_load(&done_ms) == 0) {
            (void)poll(NULL, 0, 1);
        }
        n_late += atomic_load(&done_ms) - due_ms >= LATE_MS;
    }
    cr_expect_lt(n_late, N / 2 + 1, "%u of %d by %d ms or more", n_late, N, LATE_MS);
    writer_stop_begin(w);
    writer_stop_end(w);
    writer_free(w);
    topology_free(core->topology);
    unfolded_release(&unfolded);
    core_release(core);
    free(core);
}

/* A round of a cluster whose batch takes long to gather: the heads that its transactions rest on
 * are read again, and so it is learnt whether the batch still holds. */
#include "storage/fold/round.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "storage/cluster/topology.h"
#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

#define OTHER "00000000000000bb"
#define LAST  5 /* entry of the other's log */

#define WAIT_US INT64_C(400000)

static struct core *core;
static struct unfolded unfolded;
static struct round fold_round;
static struct fake_stream_log *other;
static int64_t now_us = 5000000;

static struct {
    int64_t read_ms;         /* so long each reading of a stream takes */
    void (*meanwhile)(void); /* happens before the second look at the heads */
    size_t n_taken;          /* replies to the commands in the dispatcher's buffer */
    unsigned n_looks, n_counted;
    uint64_t from; /* the batch that was counted begins behind this entry */
    unsigned n_waits;
} seen;

static int64_t now(void)
{
    return now_us;
}

static int64_t topology_now_ms(void *data)
{
    (void)data;
    return now_us / 1000;
}

/* Commands go into the buffer one behind the other until they are answered. */
static void group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    cr_assert(kind == DISPATCH_SINGLE || core->config.ack_replicas > 0);
    if (seen.n_taken > 0) {
        buffer_clear(&fold_round.dispatcher.bytes, SIZE_MAX);
        seen.n_taken = 0;
    }
}

/* A write, and WAIT behind it: no replica has it. */
static const struct reply *answer_wait(void)
{
    static const struct reply replies[] = {
        {.type = REPLY_STATUS, .text = {"OK", 2}}, {.type = REPLY_INTEGER, .integer = 0}};
    const struct reply *reply = &replies[seen.n_taken++];
    if (seen.n_taken == 2) {
        seen.n_waits++;
        now_us += WAIT_US;
    }
    return reply;
}

static const struct reply *dispatched(struct dispatcher *dispatcher)
{
    const struct buffer *sent = &dispatcher->bytes;
    unsigned n_ranges = fake_streams.n_ranges;
    if (memmem(sent->p, sent->n, "WAIT", 4) != NULL) {
        return answer_wait();
    }
    bool is_look = seen.n_taken == 0 && memmem(sent->p, sent->n, "HGETALL", 7) != NULL;
    seen.n_looks += is_look;
    cr_assert_leq(seen.n_looks, 8u, "the round does not end");
    if (is_look && seen.n_looks == 2 && seen.meanwhile != NULL) {
        seen.meanwhile();
    }
    const struct reply *reply = stand_in.answer(sent, seen.n_taken++);
    fake_streams.is_lost = false; /* the next connection answers */
    now_us += fake_streams.n_ranges > n_ranges ? seen.read_ms * 1000 : 0;
    return reply;
}

/* By the rule of transaction.c: it counts nothing by heads that are too old. */
static struct fold_result run_transaction(
    const struct batch *batch, struct fold_cuts cuts, int trim, struct heads *heads)
{
    (void)cuts;
    (void)trim;
    if (now_us / 1000 - heads->asked_ms > HEADS_AGE_MS) {
        return fold_failed(STORAGE_BEHIND);
    }
    cr_assert(batch->n_logs == 1 && batch->logs[0].to == LAST);
    seen.n_counted++;
    seen.from = batch->logs[0].from;
    other->cursor = "5";
    return (struct fold_result){.end = FOLD_DONE};
}

/* One server has all that there is.  This process has no log yet. */
static void setup(void)
{
    static const struct topology_io no_io = {.now_ms = topology_now_ms};
    core = fold_core_make(1);
    core->is_spread = true;
    core->n_logs = 1;
    cr_assert_null(redis_url_parse("redis-cluster://127.0.0.1:1", &core->url));
    core->topology = topology_new(&core->url, core->partitions.n, &no_io, NULL);
    cr_assert_not_null(core->topology);
    topology_hint(core->topology, HINT_MOVED, 0, &core->url.seeds[0]);
    atomic_store(&core->scripts, calloc(1, sizeof(struct script_digests)));
    unfolded_init(&unfolded, &core->stats);
    fake_streams_stand_in();
    stand_in.now_us = now;
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    stand_in.transaction = run_transaction;
    cr_assert(round_init(&fold_round, core, &unfolded, NULL));
    other = fake_streams_add(OTHER, LAST);
    other->cursor = "3";
}

static void teardown(void)
{
    round_release(&fold_round);
    unfolded_release(&unfolded);
    topology_free(core->topology);
    fold_core_drop(core);
}

static void expect_round(enum storage_err err, unsigned looks, unsigned counted)
{
    enum storage_err is = round_run(&fold_round, ROUND_ALL);
    cr_expect_eq(is, err, "%s", storage_err_text(is));
    cr_expect_eq(seen.n_looks, looks, "%u looks", seen.n_looks);
    cr_expect_eq(seen.n_counted, counted, "%u transactions", seen.n_counted);
}

TestSuite(round_cluster, .init = setup, .fini = teardown, .timeout = 60);

Test(round_cluster, heads_are_read_once_for_a_batch)
{
    expect_round(STORAGE_OK, 1, 1);
    cr_expect_eq(seen.from, 3u);
}

Test(round_cluster, a_batch_that_took_long_is_counted_by_new_heads)
{
    seen.read_ms = HEADS_AGE_MS + 1;
    expect_round(STORAGE_OK, 2, 1);
    cr_expect_eq(seen.from, 3u);
    cr_expect_eq(fake_streams.n_ranges, 1u, "the batch stays");
}

/* A replica took over that lacks what was counted last. */
static void server_goes_back(void)
{
    fold_round.dispatcher.links.stood_us = now_us;
    other->cursor = "1";
}

Test(round_cluster, over_other_connections_the_batch_is_gathered_anew)
{
    seen.read_ms = HEADS_AGE_MS + 1;
    seen.meanwhile = server_goes_back;
    expect_round(STORAGE_OK, 4, 1);
    cr_expect_eq(seen.from, 1u);
    cr_expect_eq(fake_streams.n_ranges, 2u);
}

/* A server whose replicas are gone stops no question for longer than a second. */
Test(round_cluster, entries_of_others_wait_for_replicas_for_a_second)
{
    core->config.ack_replicas = 1;
    expect_round(STORAGE_OK, 4, 1);
    cr_expect_eq(seen.n_waits, 4u);
}

static void connection_is_lost(void)
{
    fake_streams.is_lost = true;
}

Test(round_cluster, a_batch_whose_heads_cannot_be_read_again_is_given_up)
{
    seen.read_ms = HEADS_AGE_MS + 1;
    seen.meanwhile = connection_is_lost;
    expect_round(STORAGE_DOWN, 2, 0);
    cr_expect_eq(fold_round.streams.n, 0u, "the next connection may tell otherwise");
}

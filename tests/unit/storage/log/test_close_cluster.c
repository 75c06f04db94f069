/* When a silent log of a cluster is closed: only when it has been counted for as long as a server
 * can go back, over connections that stood.  Strays and one Redis are in test_close.c. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "storage/cluster/topology.h"
#include "storage/log/close.h"
#include "tests/lib/commands.h"
#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

#define LOG     "00000000000000aa"
#define HOLD_MS 10000

static struct core *core;
static struct log_closer closer;
static struct fake_stream_log *log_of;
static int64_t now_us = 5000000;
static size_t n_taken; /* replies to the commands in the dispatcher's buffer */
static unsigned n_closed;

static int64_t now(void)
{
    return now_us;
}

static int64_t topology_now_ms(void *data)
{
    (void)data;
    return now_us / 1000;
}

static void group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    cr_assert_eq(kind, DISPATCH_SINGLE);
    if (n_taken > 0) {
        buffer_clear(&closer.dispatcher.bytes, SIZE_MAX);
        n_taken = 0;
    }
}

static const struct reply *dispatched(struct dispatcher *dispatcher)
{
    static struct reply reply, item;
    struct commands commands;
    const struct reply *result = &reply;
    const size_t i = n_taken++;
    cr_assert(commands_read(&dispatcher->bytes, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    reply = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    item = fold_text(LOG);
    if (command_is(command, 0, "HGETALL")) {
        result = fake_streams_heads();
    } else if (command_is(command, 0, "TIME")) {
        reply = (struct reply){.type = REPLY_NIL}; /* of which nothing is learnt */
    } else if (command_is(command, 0, "HKEYS")) {
        reply = fold_array(&item, 1);
    } else if (command_is(command, 0, "HMGET")) {
        item = fold_text(log_of->cursor);
        reply = fold_array(&item, 1);
    } else {
        cr_assert(command_is(command, 0, "EVALSHA"));
        n_closed++;
    }
    commands_release(&commands);
    return result;
}

static void setup(void)
{
    static const struct topology_io no_io = {.now_ms = topology_now_ms};
    stand_in.now_us = now;
    core = fold_core_make(1);
    core->is_spread = true;
    core->n_logs = 1;
    core->hold_ms = HOLD_MS;
    cr_assert_null(redis_url_parse("redis-cluster://127.0.0.1:1", &core->url));
    core->topology = topology_new(&core->url, core->partitions.n, &no_io, NULL);
    cr_assert_not_null(core->topology);
    atomic_store(&core->scripts, calloc(1, sizeof(struct script_digests)));
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    log_of = fake_streams_add(LOG, 5);
    log_of->cursor = "5";
    log_of->time_ms = redis_clock_ms(&core->clock) - LOG_SILENCE_MS;
}

static void teardown(void)
{
    log_closer_release(&closer);
    topology_free(core->topology);
    fold_core_drop(core);
}

TestSuite(close_cluster, .timeout = 60, .init = setup, .fini = teardown);

/* The leader looks @later_ms after the last time, and closes the log or not. */
static void look(int64_t later_ms, bool closes)
{
    now_us += later_ms * 1000;
    n_closed = 0;
    cr_expect(log_close_silent(&closer, core, NULL, INT64_MAX));
    cr_expect_eq(n_closed, closes ? 1u : 0u);
}

Test(close_cluster, a_log_that_was_counted_long_ago)
{
    look(0, false);
    look(HOLD_MS - 1, false);
    look(1, true);
}

Test(close_cluster, a_log_whose_head_has_moved_is_counted_anew)
{
    look(0, false);
    log_of->n = 6;
    log_of->cursor = "6";
    look(HOLD_MS, false);
    look(HOLD_MS, true);
}

/* A server may have gone back, and have counted less meanwhile. */
Test(close_cluster, over_other_connections_it_is_counted_anew)
{
    look(0, false);
    closer.dispatcher.links.stood_us++;
    look(HOLD_MS, false);
    look(HOLD_MS, true);
}

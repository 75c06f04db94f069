#include "storage/log/close.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

/* Which logs are closed, and which cursors without a head are deleted, with one Redis.  A
 * cluster's waits are in test_close_cluster.c and test_cluster_logs.py. */

#define PARTITIONS 2
#define LOG        "00000000000000aa"
#define STRAY      "00000000000000bb"
#define BACK_MS    1000

static struct core *core;
static struct session session;
static struct log_closer closer;
static int64_t now_us = 5000000;

static struct {
    bool has_stray;
    char done[200]; /* scripts that close, and deleted cursors, each with a semicolon behind */
} redis;

static int64_t now(void)
{
    return now_us;
}

static void note(const char *what, struct slice id)
{
    size_t n = strlen(redis.done);
    (void)snprintf(redis.done + n, sizeof(redis.done) - n, "%s %.*s;", what, (int)id.n, id.p);
}

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply, items[4];
    struct commands commands;
    const struct reply *result = &reply;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    reply = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    if (command_is(command, 0, "HGETALL")) {
        result = fake_streams_heads();
    } else if (command_is(command, 0, "HKEYS")) {
        items[0] = fold_text("cfg");
        items[1] = fold_text(LOG);
        items[2] = fold_text(STRAY);
        reply = fold_array(items, redis.has_stray ? 3 : 2);
    } else if (command_is(command, 0, "HMGET")) {
        items[0] = fold_text(fake_streams.logs[0].cursor);
        reply = fold_array(items, 1);
    } else if (command_is(command, 0, "EVALSHA")) {
        note("close", command->words[5]);
    } else {
        cr_assert(command_is(command, 0, "HDEL"));
        note("delete", command->words[2]);
    }
    commands_release(&commands);
    return result;
}

static void setup(void)
{
    stand_in.now_us = now;
    core = fold_core_make(PARTITIONS);
    atomic_store(&core->go_back_ms, BACK_MS);
    session = (struct session){.core = core, .redis = stand_in_redis(), .opened_us = 1};
    stand_in.answer = answer;
    struct fake_stream_log *log = fake_streams_add(LOG, 5);
    log->cursor = "5";
}

static void teardown(void)
{
    log_closer_release(&closer);
    fold_core_drop(core);
}

/* The leader looks @later_ms after the last time, and does @done. */
static void look(int64_t later_ms, const char *done)
{
    now_us += later_ms * 1000;
    redis.done[0] = '\0';
    cr_expect(log_close_silent(&closer, core, &session, INT64_MAX));
    cr_expect_str_eq(redis.done, done, "%s", redis.done);
}

TestSuite(close, .init = setup, .fini = teardown);

Test(close, a_log_is_closed_after_half_a_minute_of_silence)
{
    fake_streams.logs[0].time_ms = redis_clock_ms(&core->clock);
    look(0, "");
    look(LOG_SILENCE_MS - 1, "");
    look(1, "close " LOG ";");
}

Test(close, a_log_of_which_an_entry_is_not_counted_stays)
{
    closer.next_count_ms = INT64_MAX; /* nobody counts it */
    fake_streams.logs[0].cursor = "4";
    look(0, "");
    look(LOG_SILENCE_MS, "");
    fake_streams.logs[0].cursor = "5";
    look(0, "close " LOG ";");
}

Test(close, the_cursors_of_a_closed_log_are_strays)
{
    look(0, "");
    look(LOG_SILENCE_MS, "close " LOG ";");
    fake_streams.n_logs = 0;
    look(5000, "");
    look(5000, "delete " LOG ";delete " LOG ";");
}

Test(close, a_stray_is_deleted_when_redis_cannot_go_back_behind_its_head)
{
    fake_streams.logs[0].time_ms = redis_clock_ms(&core->clock);
    redis.has_stray = true;
    look(0, "");
    look(BACK_MS - 1, "");
    look(1, "delete " STRAY ";delete " STRAY ";");
}

Test(close, a_stray_is_seen_twice_at_least)
{
    fake_streams.logs[0].time_ms = redis_clock_ms(&core->clock);
    atomic_store(&core->go_back_ms, 0);
    redis.has_stray = true;
    look(0, "");
    look(0, "");
    look(1, "delete " STRAY ";delete " STRAY ";");
}

Test(close, over_another_connection_a_stray_is_new)
{
    fake_streams.logs[0].time_ms = redis_clock_ms(&core->clock);
    redis.has_stray = true;
    look(0, "");
    session.opened_us++;
    look(BACK_MS, "");
    look(BACK_MS, "delete " STRAY ";delete " STRAY ";");
}

Test(close, a_stray_that_was_away_is_new)
{
    fake_streams.logs[0].time_ms = redis_clock_ms(&core->clock);
    redis.has_stray = true;
    look(0, "");
    redis.has_stray = false;
    look(BACK_MS, "");
    redis.has_stray = true;
    look(BACK_MS, "");
    look(BACK_MS, "delete " STRAY ";delete " STRAY ";");
}

Test(close, a_stray_whose_head_comes_is_none)
{
    fake_streams.logs[0].time_ms = redis_clock_ms(&core->clock);
    redis.has_stray = true;
    look(0, "");
    fake_streams.logs[1] = fake_streams.logs[0];
    memcpy(fake_streams.logs[1].id, STRAY, sizeof(STRAY));
    fake_streams.n_logs = 2;
    fake_streams.logs[1].n = 0;
    look(BACK_MS, "");
}

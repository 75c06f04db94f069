#include "storage/read/log_progress.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

/* Which cursors are asked for: all, those of logs that have grown, or none. */

#define PARTITIONS 2
#define ONE        "00000000000000aa"
#define TWO        "00000000000000bb"

static struct core *core;
static struct session session;
static struct log_progress progress;

static struct {
    const char *cursors[PARTITIONS][FAKE_STREAMS]; /* of the logs of fake_streams */
    bool reconnects; /* the connection is another one from the next heads on */
    bool lost, refuses;
    char asked[200]; /* the logs whose cursors partition 0 was asked for, a trip each */
} redis;

static const struct reply *take_cursors(const struct command *command, size_t partition)
{
    static struct reply reply, items[FAKE_STREAMS];
    for (size_t w = 2; w < command->n; w++) {
        for (size_t l = 0; l < fake_streams.n_logs; l++) {
            if (command_is(command, w, fake_streams.logs[l].id)) {
                items[w - 2] = fold_text(redis.cursors[partition][l]);
            }
        }
        if (partition == 0) {
            size_t n = strlen(redis.asked);
            (void)snprintf(redis.asked + n, sizeof(redis.asked) - n, "%.2s",
                command->words[w].p + LOG_ID_TEXT - 2);
        }
    }
    (void)strncat(redis.asked, partition == 0 ? ";" : "", 2);
    reply = fold_array(items, command->n - 2);
    return &reply;
}

static const struct reply *error_of(const char *text)
{
    static struct reply reply;
    reply = (struct reply){.type = REPLY_ERROR, .text = slice_of(text)};
    return &reply;
}

static const struct reply *pair_of(const char *a, const char *b)
{
    static struct reply reply, items[2];
    items[0] = fold_text(a);
    items[1] = fold_text(b);
    reply = fold_array(items, 2);
    return &reply;
}

/* Does it ask a partition for cursors? */
static bool is_of_cursors(const struct command *command)
{
    return command_is(command, 0, "HMGET") && !command_is(command, 2, "ver");
}

/* Behind the heads come the partitions, one after the other. */
static const struct reply *answer(const struct buffer *out, size_t i)
{
    struct commands commands;
    const struct reply *reply;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    size_t partition = 0;
    for (size_t before = 0; before < i; before++) {
        partition += is_of_cursors(&commands.commands[before]);
    }
    if (redis.refuses) {
        reply = error_of(i == 0 ? "NOPERM no heads" : "LOADING too early");
    } else if (command_is(command, 0, "HGETALL")) {
        session.opened_us += redis.reconnects;
        redis.reconnects = false;
        reply = fake_streams_heads();
    } else if (command_is(command, 0, "TIME")) {
        reply = pair_of("1000", "0");
    } else if (command_is(command, 2, "ver")) {
        reply = pair_of("v1", "u1");
    } else {
        cr_assert(is_of_cursors(command));
        reply = take_cursors(command, partition);
    }
    commands_release(&commands);
    return redis.lost ? NULL : reply;
}

static void setup(void)
{
    core = fold_core_make(PARTITIONS);
    session = (struct session){.core = core, .redis = stand_in_redis(), .opened_us = 7};
    stand_in.answer = answer;
    (void)fake_streams_add(ONE, 5);
    (void)fake_streams_add(TWO, 5);
    progress.remembers = true;
}

static void teardown(void)
{
    log_progress_release(&progress);
    fold_core_drop(core);
}

/* All partitions have counted so much of the two logs. */
static void counted(const char *one, const char *two)
{
    for (size_t p = 0; p < PARTITIONS; p++) {
        redis.cursors[p][0] = one;
        redis.cursors[p][1] = two;
    }
}

/* Read: @asked are the cursors that were asked for, and so much is counted then. */
static void expect(const char *asked, uint64_t one, uint64_t two)
{
    bool lost = false;
    redis.asked[0] = '\0';
    cr_assert_eq(log_progress_read(&progress, core, &session, INT64_MAX, &lost), STORAGE_OK);
    cr_expect_not(lost);
    cr_expect_str_eq(redis.asked, asked, "%s, not %s", redis.asked, asked);
    const uint64_t wanted[] = {one, two};
    for (size_t i = 0; i < 2; i++) {
        const struct log_head *log = heads_find(&progress.logs, fake_streams.logs[i].id, i);
        cr_assert_not_null(log);
        cr_expect_eq(log->counted, wanted[i], "%" PRIu64, log->counted);
    }
}

TestSuite(log_progress, .init = setup, .fini = teardown);

Test(log_progress, what_was_counted_and_has_not_grown_is_not_asked_for_again)
{
    counted("5", "5");
    expect("aabb;", 5, 5);
    expect("", 5, 5);
    counted("5", "6");
    fake_streams.logs[1].n = 6;
    expect("bb;", 5, 6);
    expect("", 5, 6);
}

/* By the ids of partition 0 whole answers are remembered. */
Test(log_progress, the_ids_of_partition_0_are_told)
{
    counted("5", "5");
    expect("aabb;", 5, 5);
    cr_assert_eq(progress.ids_n, 6u);
    cr_expect_eq(memcmp(progress.ids, "v1 u1 ", 6), 0);
}

Test(log_progress, what_was_not_counted_is_asked_for_again)
{
    counted("5", "4");
    expect("aabb;", 5, 4);
    expect("bb;", 5, 4);
    counted("5", "5");
    expect("bb;", 5, 5);
    expect("", 5, 5);
}

Test(log_progress, the_partition_that_lags_tells)
{
    counted("5", "5");
    redis.cursors[1][0] = "3:2";
    redis.cursors[1][1] = NULL;
    expect("aabb;", 2, 0);
}

Test(log_progress, a_reader_that_does_not_remember_asks_for_all)
{
    progress.remembers = false;
    counted("5", "5");
    expect("aabb;", 5, 5);
    expect("aabb;", 5, 5);
}

/* Redis may have gone back. */
Test(log_progress, over_another_connection_all_is_asked_for)
{
    counted("5", "5");
    expect("aabb;", 5, 5);
    session.opened_us++;
    counted("4", "5");
    expect("aabb;", 4, 5);
}

Test(log_progress, a_connection_that_is_made_meanwhile_makes_it_read_again)
{
    counted("5", "5");
    expect("aabb;", 5, 5);
    redis.reconnects = true;
    counted("4", "5");
    expect("aabb;", 4, 5);
    expect("aabb;", 4, 5); /* that reading was over two connections */
    expect("aa;", 4, 5);
}

Test(log_progress, how_many_logs_were_closed)
{
    counted("5", "5");
    expect("aabb;", 5, 5);
    cr_expect_eq(progress.logs.n_closed, 0u);
    fake_streams.closed = "17";
    expect("", 5, 5);
    cr_expect_eq(progress.logs.n_closed, 17u);
    redis.reconnects = true; /* the heads are read twice */
    expect("aabb;", 5, 5);
    cr_expect_eq(progress.logs.n_closed, 17u);
}

/* Each place of a cluster has a register of its own. */
Test(log_progress, logs_are_closed_in_all_places)
{
    bool lost = false;
    counted("5", "5");
    expect("aabb;", 5, 5);
    progress.remembers = false;
    core->is_spread = true;
    core->n_logs = PARTITIONS;
    fake_streams.closed = "17";
    cr_expect_eq(log_progress_read(&progress, core, &session, INT64_MAX, &lost), STORAGE_OK);
    cr_expect_eq(progress.logs.n_closed, 17u * PARTITIONS);
    core->is_spread = false;
}

Test(log_progress, after_a_failure_nothing_is_remembered)
{
    bool lost = false;
    counted("5", "5");
    expect("aabb;", 5, 5);
    redis.lost = true;
    cr_expect_eq(log_progress_read(&progress, core, &session, INT64_MAX, &lost), STORAGE_DOWN);
    cr_expect(lost);
    redis.lost = false;
    expect("aabb;", 5, 5);
}

Test(log_progress, the_first_fault_is_told)
{
    bool lost = false;
    redis.refuses = true;
    cr_expect_eq(log_progress_read(&progress, core, &session, INT64_MAX, &lost), STORAGE_REFUSED);
    cr_expect_str_eq(progress.detail, "NOPERM no heads");
    cr_expect_not(lost);
}

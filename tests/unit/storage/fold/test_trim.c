#include "storage/fold/trim.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

/* What is cut off this process's streams, and when: only what all partitions had counted at a
 * reading over the same connections, as long ago as a server can go back. */

#define PARTITIONS 3
#define OWN        "00000000000000aa"
#define NEXT       "00000000000000bb"
#define BACK_MS    1000

static struct core *core;
static struct session session;
static struct unfolded unfolded;
static struct trimmer trimmer;
static int64_t now_us = 5000000;

static struct {
    const char *cursors[PARTITIONS]; /* of OWN or NEXT, in each */
    bool lost;
    unsigned n_reads;
    char cut[200]; /* the XTRIMs since the last look, each with a semicolon behind */
} redis;

static int64_t now(void)
{
    return now_us;
}

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply, item;
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    if (command_is(command, 0, "HMGET")) {
        cr_assert(command->n == 3 && i < PARTITIONS);
        item = fold_text(redis.cursors[i]);
        reply = fold_array(&item, 1);
        redis.n_reads++;
    } else {
        cr_assert(command_is(command, 0, "XTRIM") && command_is(command, 2, "MINID"));
        struct slice key = command->words[1];
        size_t n = strlen(redis.cut);
        (void)snprintf(redis.cut + n, sizeof(redis.cut) - n, "%.*s %lld;", (int)LOG_ID_TEXT,
            key.p + key.n - LOG_ID_TEXT, command_number(command, 3));
        reply = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    }
    commands_release(&commands);
    return redis.lost ? NULL : &reply;
}

static void setup(void)
{
    core = fold_core_make(PARTITIONS);
    core->hold_ms = 10;
    atomic_store(&core->go_back_ms, BACK_MS);
    unfolded_init(&unfolded, &core->stats);
    unfolded_begin(&unfolded, 0, OWN);
    session = (struct session){.core = core, .redis = stand_in_redis(), .opened_us = 7};
    stand_in.answer = answer;
    stand_in.now_us = now;
}

static void teardown(void)
{
    unfolded_release(&unfolded);
    fold_core_drop(core);
}

/* All partitions have counted so far; then the trimmer looks, @later_ms after the last look.  It
 * must cut @cut. */
static void look(const char *a, const char *b, const char *c, int64_t later_ms, const char *cut)
{
    redis.cursors[0] = a;
    redis.cursors[1] = b;
    redis.cursors[2] = c;
    redis.cut[0] = '\0';
    now_us += later_ms * 1000;
    trim_streams(&trimmer, core, &session, &unfolded, INT64_MAX);
    cr_expect_str_eq(redis.cut, cut, "%s", redis.cut);
}

TestSuite(trim, .init = setup, .fini = teardown);

Test(trim, what_was_counted_everywhere_at_the_reading_before)
{
    look("5", "4", "6", 0, "");
    look("9", "9", "9", BACK_MS, OWN " 5;");
    look("9", "9", "9", BACK_MS, OWN " 10;");
    look("9", "9", "9", BACK_MS, "");
}

Test(trim, a_server_that_went_back_keeps_what_it_lacks)
{
    look("9", "9", "9", 0, "");
    look("9", "3", "9", BACK_MS, OWN " 4;");
}

Test(trim, a_partition_without_a_cursor_has_counted_nothing)
{
    look("9", NULL, "9", 0, "");
    look("9", "9", "9", BACK_MS, "");
    look("9", "9", "9", BACK_MS, OWN " 10;");
}

Test(trim, an_entry_that_is_counted_in_part_stays)
{
    look("9", "5:1", "9", 0, "");
    look("9", "9", "9", BACK_MS, OWN " 5;");
}

Test(trim, readings_lie_as_far_apart_as_a_server_can_go_back)
{
    look("5", "5", "5", 0, "");
    look("9", "9", "9", BACK_MS - 1, "");
    cr_expect_eq(redis.n_reads, (unsigned)PARTITIONS, "not read either");
    look("9", "9", "9", 1, OWN " 6;");
    core->hold_ms = 3 * BACK_MS;
    look("9", "9", "9", BACK_MS, "");
    look("9", "9", "9", 2 * BACK_MS, OWN " 10;");
}

Test(trim, over_other_connections_nothing_is_known)
{
    look("9", "9", "9", 0, "");
    session.opened_us++;
    look("9", "9", "9", BACK_MS, "");
    look("9", "9", "9", BACK_MS, OWN " 10;");
}

/* Its numbers begin at 1 again, below those that were cut off the old log. */
Test(trim, another_log_begins_anew)
{
    look("9", "9", "9", 0, "");
    look("9", "9", "9", BACK_MS, OWN " 10;");
    unfolded_begin(&unfolded, 0, NEXT);
    look("2", "2", "2", BACK_MS, "");
    look("2", "2", "2", BACK_MS, NEXT " 3;");
}

Test(trim, a_reading_that_fails_counts_for_nothing)
{
    look("5", "5", "5", 0, "");
    redis.lost = true;
    look("7", "7", "7", BACK_MS, "");
    redis.lost = false;
    look("9", "9", "9", 1, OWN " 6;");
    look("x", "9", "9", BACK_MS, "");
    look("9", "9", "9", 1, OWN " 10;");
}

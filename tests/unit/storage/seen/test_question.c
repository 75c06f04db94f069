/* A question about a user to a cluster: in which order it reads, and over which connections. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/read/operation.h"
#include "storage/time/units.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(seen_question, .timeout = 60);

static struct seen_world {
    struct core *core;
    struct reader *reader;
    struct storage_job job;
    unsigned n_groups, n_taken;
    enum dispatcher_kind kind;
    bool is_made_anew; /* a connection, behind the second reply */
    bool is_lost;      /* the partition's state */
    const char *over;  /* its field */
    struct buffer asked;
    struct commands sent; /* their words are in `asked` */
} w;

static void note_group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    w.kind = kind;
    w.n_groups++;
}

/* Two months, each with two logs and a filter that are not there; then the time, the state, and how
 * late it has been. */
static const struct reply *reply_next(struct dispatcher *dispatcher)
{
    static struct reply seconds[2];
    static struct reply reply;
    unsigned i = w.n_taken++;
    if (i == 0) { /* the dispatcher forgets them at the end */
        buffer_append(&w.asked, dispatcher->bytes.p, dispatcher->bytes.n);
        cr_assert(commands_read(&w.asked, &w.sent));
    }
    if (i == 2 && w.is_made_anew) {
        dispatcher->links.stood_us++;
    }
    seconds[0] = fold_text("1795187834");
    seconds[1] = fold_text("0");
    if (i == 8) {
        reply = fold_text(w.over);
        return &reply;
    }
    if (i == 7) {
        seconds[0] = fold_text(w.is_lost ? NULL : "settings");
        reply = fold_array(seconds, 1);
        return &reply;
    }
    if (i > 8) { /* it reads once more */
        struct commands all;
        cr_assert(commands_read(&dispatcher->bytes, &all) && i < all.n);
        const struct command *command = &all.commands[i];
        seconds[0] = fold_text(command_is(command, 0, "HMGET") ? "settings" : "1795187834");
        reply = command_is(command, 0, "TIME")      ? fold_array(seconds, 2)
                : command_is(command, 0, "HMGET")   ? fold_array(seconds, 1)
                : command_is(command, 0, "HGETALL") ? fold_array(NULL, 0)
                : command_is(command, 0, "HGET")    ? fold_text(w.over)
                                                    : fold_text(NULL);
        commands_release(&all);
        return &reply;
    }
    reply = i == 6 ? fold_array(seconds, 2) : i % 3 == 2 ? fold_array(NULL, 0) : fold_text(NULL);
    return &reply;
}

static struct slice same_name(const void *names, struct slice page)
{
    (void)names;
    return page;
}

static void setup(void)
{
    static const struct slice page = {"/a", 2};
    w = (struct seen_world){.core = fold_core_make(1)};
    w.reader = calloc(1, sizeof(*w.reader));
    cr_assert_not_null(w.reader);
    w.core->is_spread = true;
    w.core->config.seen =
        (struct seen_config){.on = true, .capacity = 1000, .error = 0.01, .keep_s = 30 * DAY_S};
    atomic_store(&w.core->settled_us, INT64_C(1000));
    w.reader->core = w.reader->session.core = w.core;
    w.reader->session.dispatcher = &w.reader->dispatcher;
    buffer_init(&w.reader->dispatcher.bytes);
    buffer_init(&w.asked);
    w.job = (struct storage_job){.op = STORAGE_SEEN,
        .arrived_us = 500,
        .u.seen = {.site = {"s", 1},
            .user = {"ann", 3},
            .pages = &page,
            .n_pages = 1,
            .other_name = same_name}};
    stand_in.group = note_group;
    stand_in.dispatched = reply_next;
}

static void teardown(void)
{
    commands_release(&w.sent);
    buffer_release(&w.asked);
    buffer_release(&w.reader->dispatcher.bytes);
    free(w.reader);
    fold_core_drop(w.core);
}

static enum storage_err ask(void)
{
    bool lost = false;
    enum storage_err err = seen_run(w.reader, &w.job, &lost);
    cr_expect_not(lost);
    return err;
}

/* A pair moves from the log to the log that is folded, and on into the filter.  Read in another
 * order, by a slot that moves in between, it might be in none of them. */
Test(seen_question, log_old_log_and_filter_are_read_in_this_order, .init = setup, .fini = teardown)
{
    cr_assert_eq(ask(), STORAGE_OK);
    cr_expect_not(w.job.u.seen.seen);
    cr_expect_eq(w.n_groups, 1u, "of one server, over one connection");
    cr_expect_eq(w.kind, DISPATCH_ORDERED);
    cr_assert_eq(w.sent.n, 9u);
    cr_expect(command_is(&w.sent.commands[7], 0, "HMGET"), "and the state behind all of them");
    cr_expect(command_is(&w.sent.commands[8], 0, "HGET"), "and how late it has been");
    for (size_t i = 0; i < 6; i++) {
        const struct command *command = &w.sent.commands[i];
        static const char *const ends[] = {":log", ":old", ":filter"};
        struct slice key = command->words[1];
        size_t n = strlen(ends[i % 3]);
        cr_expect(command_is(command, 0, i % 3 == 2 ? "HGETALL" : "GET"), "command %zu", i);
        cr_expect(
            key.n > n && memcmp(key.p + key.n - n, ends[i % 3], n) == 0, "%.*s", (int)key.n, key.p);
    }
}

/* The server may have gone back behind what was settled. */
Test(
    seen_question, a_connection_that_is_made_anew_voids_the_answer, .init = setup, .fini = teardown)
{
    w.is_made_anew = true;
    cr_expect_eq(ask(), STORAGE_DOWN);
}

/* What is not there is no answer: the pairs may be lost with the state. */
Test(seen_question, a_partition_that_has_lost_its_state_knows_nothing, .init = setup,
    .fini = teardown)
{
    w.is_lost = true;
    cr_expect_eq(ask(), STORAGE_STATE_LOST);
    cr_expect(strstr(w.job.detail, "has lost its state") != NULL, "%s", w.job.detail);
}

/* What was counted then lies in a month that has not begun, by the clock that was set back. */
Test(seen_question, how_late_it_has_been_decides_about_the_months, .init = setup, .fini = teardown)
{
    static char over[64];
    (void)snprintf(over, sizeof(over), "%011lld0123456789abcdef",
        (long long)(FOLD_NOW_S + 31 * INT64_C(86400)));
    w.over = over;
    cr_assert_eq(ask(), STORAGE_OK, "%s", w.job.detail);
    cr_expect_eq(w.n_taken, 9u + 3 * 3 + 3, "three months, after two");
}

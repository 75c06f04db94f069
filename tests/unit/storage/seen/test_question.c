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
    bool has_filters;  /* each month has a full filter, of which no bit is set */
    struct buffer asked;
    struct commands sent; /* their words are in `asked` */
} w;

static void note_group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    w.kind = kind;
    w.n_groups++;
}

static const struct reply *full_filter(void)
{
    static const char *const words[] = {
        "n", "1", "0", "1000", "capacity", "1000", "error", "0.01", "rules", "3"};
    static struct reply items[10];
    static struct reply reply;
    for (size_t i = 0; i < 10; i++) {
        items[i] = fold_text(words[i]);
    }
    reply = fold_array(items, 10);
    return &reply;
}

/* Of each bit that command @i asks for: it is not set. */
static const struct reply *no_bits(const struct dispatcher *dispatcher, size_t i)
{
    static struct reply items[64];
    static struct reply reply;
    struct commands all;
    cr_assert(commands_read(&dispatcher->bytes, &all) && i < all.n);
    cr_assert(command_is(&all.commands[i], 0, "BITFIELD_RO"));
    size_t n = (all.commands[i].n - 2) / 3; /* GET u1 BIT */
    commands_release(&all);
    cr_assert_leq(n, 64u);
    for (size_t k = 0; k < n; k++) {
        items[k] = (struct reply){.type = REPLY_INTEGER, .integer = 0};
    }
    reply = fold_array(items, n);
    return &reply;
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
    if (w.has_filters && (i == 2 || i == 5)) {
        return full_filter();
    }
    if (w.has_filters && i > 8) { /* the bits */
        return no_bits(dispatcher, i);
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

static struct slice other_of(const void *names, struct slice page)
{
    (void)names;
    return page.n == 2 ? SLICE("/another") : SLICE("/a");
}

/* Ask for @n pages, one by one or whether any was seen.  Returns the rate of false answers. */
static double rate_of(size_t n, bool is_each, bool has_others)
{
    static const struct slice pages[] = {{"/a", 2}, {"/b", 2}, {"/c", 2}};
    static bool each[3];
    w.n_taken = 0;
    w.has_filters = true;
    w.job.u.seen.pages = pages;
    w.job.u.seen.n_pages = n;
    w.job.u.seen.each = is_each ? each : NULL;
    w.job.u.seen.other_name = has_others ? other_of : same_name;
    commands_release(&w.sent);
    buffer_clear(&w.asked, SIZE_MAX);
    buffer_clear(&w.reader->dispatcher.bytes, SIZE_MAX);
    cr_assert_eq(ask(), STORAGE_OK, "%s", w.job.detail);
    cr_expect_not(w.job.u.seen.seen);
    return w.job.u.seen.false_positives;
}

/* A filter of each of two months may say yes by chance, for each name that is asked for. */
Test(seen_question, the_rate_of_false_answers_is_that_of_all_names, .init = setup, .fini = teardown)
{
    double one = rate_of(1, false, false);
    cr_expect(one > 0.009 && one < 0.01, "%g: two first layers, each of half of 0.01", one);
    double two = one + one - one * one;
    double three = two + one - two * one;
    cr_expect_float_eq(rate_of(3, false, false), three, 1e-9, "any of three pages");
    cr_expect_float_eq(rate_of(3, true, false), one, 1e-9, "each of three pages");
    cr_expect_float_eq(rate_of(1, false, true), two, 1e-9, "one page, by two names");
    cr_expect_float_eq(rate_of(1, true, true), two, 1e-9, "each page, by two names");
}

/* The job runs again where a connection was lost.  By then its set has no page any more. */
Test(seen_question, what_is_decided_without_a_filter_is_true, .init = setup, .fini = teardown)
{
    cr_expect_gt(rate_of(1, true, false), 0);
    w.job.u.seen.n_pages = 0;
    cr_assert_eq(ask(), STORAGE_OK);
    cr_expect_eq(w.job.u.seen.false_positives, 0);
}

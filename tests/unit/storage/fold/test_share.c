#include "storage/fold/share.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/share_fixture.h"

#define MINUTE_MS INT64_C(60000)

/* What a share decides by the state that was read, and what it writes of the state. */
TestSuite(share, .init = fixture_setup, .fini = fixture_teardown, .timeout = 60);

/* ---- cursors ---- */

static const struct {
    const char *a, *b; /* cursors that were read */
    uint32_t from, to; /* rows of the share, in one stripe; to 0: the share has all tasks */
    enum share_look look;
    size_t events;             /* counted */
    const char *a_new, *b_new; /* cursors that are written; "": none */
} decisions[] = {
    {NULL, "6", 0, 0, SHARE_FOLDS, 7, "3", "7"},
    {"1", "6", 0, 0, SHARE_FOLDS, 5, "3", "7"},
    {"2", "6", 0, 0, SHARE_FOLDS, 5, "3", "7"},
    /* some events of an entry are counted */
    {"1:1", "6", 0, 0, SHARE_FOLDS, 6, "3", "7"},
    {"3:2", "6", 0, 0, SHARE_FOLDS, 3, "3", "7"},
    {"3:2", "7:1", 0, 0, SHARE_FOLDS, 2, "3", "7"},
    {"3", "7:1", 0, 0, SHARE_FOLDS, 1, "", "7"},
    {"3:3", "7", 0, 0, SHARE_FOLDS, 0, "3", ""},
    /* one log is counted, or all are, or more than the batch has */
    {"3", "6", 0, 0, SHARE_FOLDS, 2, "", "7"},
    {"3", "7", 0, 0, SHARE_NOTHING, 0, "", ""},
    {"9", "7:5", 0, 0, SHARE_FOLDS, 0, "", "7"},
    {"9:1", "12", 0, 0, SHARE_NOTHING, 0, "", ""},
    /* entries are missing */
    {NULL, NULL, 0, 0, SHARE_STALE, 0, "", ""},
    {NULL, "5", 0, 0, SHARE_STALE, 0, "", ""},
    {"3", "6:1", 0, 0, SHARE_STALE, 0, "", ""},
    {"3", "5", 0, 1, SHARE_STALE, 0, "", ""},
    /* the cut is within an entry, behind one, and of what is left of a stripe */
    {NULL, "6", 0, 1, SHARE_FOLDS, 1, "0*5,1:1,0*26", ""},
    {"1:1", "6", 0, 1, SHARE_NOTHING, 0, "", ""},
    {"0*5,1:1,0*26", "6", 1, 3, SHARE_FOLDS, 2, "0*5,2,0*26", "6*5,7:1,6*26"},
    {NULL, "6", 0, 2, SHARE_FOLDS, 2, "0*5,2,0*26", ""},
    {"2", "7:1", 3, 6, SHARE_FOLDS, 3, "2*5,3:2,2*26", "7:1*5,7,7:1*26"},
    {"3:2", "7", 6, 7, SHARE_FOLDS, 1, "3:2*5,3,3:2*26", ""},
    {"0*5,3:2,0*26", "7", 6, 7, SHARE_FOLDS, 1, "0*5,3,0*26", ""},
    /* one stripe is ahead of the others, or behind them */
    {"0*5,3,0*26", "6*5,7,6*26", 0, 0, SHARE_FOLDS, 0, "3", "7"},
    {"0*5,9,0*26", "6*5,7,6*26", 0, 0, SHARE_FOLDS, 0, "3*5,9,3*26", "7"},
    {"3*5,0,3*26", "7", 0, 0, SHARE_FOLDS, 5, "3", ""},
    {"3*5,1:1,3*26", "7*5,7:1,7*26", 0, 0, SHARE_FOLDS, 5, "3", "7"},
    {"3*5,0,3*26", "7", 0, 7, SHARE_FOLDS, 5, "3", ""},
    {"0*5,3,0*26", "6*5,7,6*26", 0, 7, SHARE_NOTHING, 0, "", ""},
    {"3", "7*5,5,7*26", 0, 0, SHARE_STALE, 0, "", ""},
    {"3", "5*5,7,5*26", 0, 7, SHARE_NOTHING, 0, "", ""},
};

Test(share, counts_what_no_cursor_says_is_counted)
{
    for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
        struct share_state_fields state = {
            .cfg = FOLD_CFG, .a = decisions[i].a, .b = decisions[i].b};
        char what[40];
        (void)snprintf(what, sizeof(what), "case %zu", i);
        if (decisions[i].to == 0) {
            fixture_begin();
        } else {
            fixture_begin_stripe(decisions[i].from, decisions[i].to);
        }
        enum share_look result = fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS);
        cr_expect_eq(result, decisions[i].look, "%s: %d", what, result);
        if (result == SHARE_FOLDS) {
            cr_expect_eq((size_t)fixture_shown().fold_events, decisions[i].events, "%s: %zu", what,
                (size_t)fixture_shown().fold_events);
            fixture_expect_written(SHARE_LOG_A, decisions[i].a_new, what);
            fixture_expect_written(SHARE_LOG_B, decisions[i].b_new, what);
        }
    }
}

Test(share, counts_nothing_of_a_log_without_a_head)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .b = "6"};
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_GONE, SHARE_NOW_MS), SHARE_FOLDS);
    cr_expect_eq((size_t)fixture_shown().fold_events, 2u);
    fixture_expect_written(SHARE_LOG_A, "", "a log that is gone");
    fixture_expect_written(SHARE_LOG_B, "7", "the other");
    state.b = "7";
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_GONE, SHARE_NOW_MS), SHARE_NOTHING);
}

/* ---- states ---- */

Test(share, refuses_a_state_that_is_not_ours)
{
    struct share_state_fields state = {.b = "6"};
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_EMPTIED);
    state.cfg = "other settings";
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_CONFIG);
}

Test(share, takes_no_reply_that_is_none)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .a = "x", .b = "6"};
    struct reply error = {.type = REPLY_ERROR, .text = SLICE("ERR")};
    struct reply items[7] = {{.type = REPLY_NIL}};
    struct reply few = fold_array(items, 7);
    struct buffer out;
    buffer_init(&out);
    fixture_begin();
    cr_assert_gt(share_write(fixture.share, SHARE_STATE, &out), 1u);
    cr_expect_not(fixture_take_state(&state));
    cr_expect_not(share_take(fixture.share, SHARE_STATE, 0, &error));
    cr_expect_not(share_take(fixture.share, SHARE_STATE, 0, &few));
    buffer_release(&out);
}

/* ---- over ---- */

/* The instant that is written to `over`, and an id that never was there; -1: none. */
static long long new_over(const char *was, int64_t now_ms)
{
    static char last[100];
    struct share_state_fields state = {.cfg = FOLD_CFG, .over = was, .b = "6"};
    char is[100];
    fixture_begin();
    cr_assert_eq(fixture_decide(&state, LOG_COUNTS, now_ms), SHARE_FOLDS);
    fixture_written("over", is);
    if (is[0] == '\0') {
        return -1;
    }
    cr_expect_str_neq(is, last);
    memcpy(last, is, sizeof(last));
    cr_expect_eq(is[11], ' ');
    return strtoll(is, NULL, 10);
}

Test(share, moves_over_on_or_gives_it_a_new_id)
{
    const int64_t minute_s = FOLD_NOW_S / 60 * 60; /* all events are in it */
    char was[40];
    cr_expect_eq(new_over(NULL, SHARE_NOW_MS), minute_s - 60);
    (void)snprintf(was, sizeof(was), "%011lld x", (long long)minute_s - 60);
    cr_expect_eq(new_over(was, SHARE_NOW_MS), -1, "it stays");
    cr_expect_eq(new_over(was, SHARE_NOW_MS + MINUTE_MS), minute_s);
    (void)snprintf(was, sizeof(was), "%011lld x", (long long)minute_s);
    cr_expect_eq(new_over(was, SHARE_NOW_MS), -1, "minutes that end by it are not written to");
    (void)snprintf(was, sizeof(was), "%011lld x", (long long)minute_s + 60);
    cr_expect_eq(new_over(was, SHARE_NOW_MS), minute_s + 60, "one of them is");
    cr_expect_eq(new_over(was, SHARE_NOW_MS + 5 * MINUTE_MS), minute_s + 4 * 60);
}

/* ---- where memory is full ---- */

Test(share, says_what_it_has_read)
{
    static const char *const expected[] = {"cfg", "=" FOLD_CFG, "ver", "=v", "kept", "-", "over",
        "-", "fold", "=f", "users", "=g", "deleted", "-", "deleting", "-", SHARE_LOG_A, "-",
        SHARE_LOG_B, "=6"};
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g", .b = "6"};
    struct buffer out;
    struct commands words;
    buffer_init(&out);
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    cr_assert_eq(share_write_expected(fixture.share, &out), 23u);
    struct buffer command;
    buffer_init(&command);
    buffer_append(&command, "*23\r\n", 5);
    buffer_append(&command, out.p, out.n);
    cr_assert(commands_read(&command, &words) && words.n == 1);
    cr_expect(command_is(&words.commands[0], 0, "11"));
    size_t at = 1;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i += 2) {
        at += command_is(&words.commands[0], at, "st") ? 2 : 0;
        cr_expect(command_is(&words.commands[0], at, expected[i]), "%s", expected[i]);
        cr_expect(command_is(&words.commands[0], at + 1, expected[i + 1]), "%s", expected[i]);
        at += 2;
    }
    commands_release(&words);
    buffer_release(&command);
    buffer_release(&out);
}

#include "storage/fold/share.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/share_fixture.h"

/* What a share asks behind its first questions, and how the replies change what it writes. */
TestSuite(share_questions, .init = fixture_setup, .fini = fixture_teardown, .timeout = 60);

/* ---- which events were first ---- */

/* One row of a user who is known, at index 5, or whom the answers to the first questions tell. */
static void expect_first(bool known, bool is_set)
{
    static const uint8_t ticket[16] = {1};
    static const struct slice actions[] = {{"checkin", 7}};
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g", .b = "6"};
    enum log_fate fates[BATCH_LOGS] = {LOG_COUNTS, LOG_COUNTS};
    struct reply bit = {.type = REPLY_INTEGER, .integer = is_set};
    struct buffer out;
    struct commands questions;
    uint32_t log = 0;
    if (known) {
        known_users_generation(&fixture.memory.users, 0, SLICE("g"));
        known_users_add(
            &fixture.memory.users, 0, &fixture.batch.rows[0].user_id, 5, ACTIVE_DAY_NONE);
    }
    fixture.batch.rows[0].ticket = ticket;
    fixture.batch.rows[0].actions = actions;
    fixture.batch.rows[0].n_actions = 1;
    fixture_begin();
    cr_expect(share_asks_more(fixture.share));
    fixture_look(&state);
    buffer_init(&out);
    size_t n = share_write(fixture.share, SHARE_MORE, &out);
    cr_assert(commands_read(&out, &questions));
    cr_assert(questions.n == n && n == (known ? 1u : 0u), "who has no index has no bit");
    if (known) {
        cr_expect(command_is(&questions.commands[0], 0, "GETBIT"));
        cr_expect(command_is(&questions.commands[0], 2, "5"));
        cr_assert(share_take(fixture.share, SHARE_MORE, 0, &bit));
    }
    commands_release(&questions);
    buffer_release(&out);
    cr_assert_eq(share_decide(fixture.share, fates, SHARE_NOW_MS, &log), SHARE_FOLDS);
    buffer_init(&out);
    (void)share_write_commands(fixture.share, &out);
    cr_expect_eq((size_t)fixture_shown().first_actions, is_set ? 0u : 1u);
    cr_expect_eq(memmem(out.p, out.n, "0 checkin\n", 10) != NULL, !is_set);
    cr_expect_eq(memmem(out.p, out.n, ":first:0100", 11) != NULL, !is_set);
    buffer_release(&out);
}

Test(share_questions, notes_who_was_first)
{
    expect_first(true, true);
    expect_first(true, false);
    known_users_forget_all(&fixture.memory.users);
    expect_first(false, false);
}

Test(share_questions, asks_nothing_more_where_nobody_asks)
{
    fixture_begin();
    cr_expect_not(share_asks_more(fixture.share));
}

/* The index is needed before the visits are answered, so where the visit is does not help. */
Test(share_questions, asks_more_of_a_user_whose_visit_is_expected)
{
    static const uint8_t ticket[16] = {1};
    known_visitors_add(&fixture.shared.visitors, &fixture.batch.rows[0].user_id,
        FOLD_NOW_S / (2 * fixture.core->config.visit_timeout_s));
    fixture.batch.rows[0].ticket = ticket;
    fixture_begin();
    cr_expect(share_asks_more(fixture.share));
}

/* ---- what counters of old buckets have ---- */

/* Ask, and answer as if nothing were there but @n_names in each hour and day.  Returns how many
 * questions there were. */
static size_t answer_step(enum share_step step, int64_t n_names)
{
    struct buffer out;
    struct reply nil[SHARE_ROWS] = {{.type = REPLY_NIL}};
    struct commands questions;
    buffer_init(&out);
    size_t n = share_write(fixture.share, step, &out);
    cr_assert(n == 0 || (commands_read(&out, &questions) && questions.n == n));
    for (size_t i = 0; i < n; i++) {
        const struct command *c = &questions.commands[i];
        struct reply size = {.type = REPLY_INTEGER, .integer = n_names};
        struct reply array = fold_array(nil, c->n - 2);
        cr_assert(share_take(fixture.share, step, i, command_is(c, 0, "ZCARD") ? &size : &array));
    }
    if (n > 0) {
        commands_release(&questions);
        cr_expect_not(share_take(fixture.share, step, n, &nil[0]), "one too many");
    }
    buffer_release(&out);
    return n;
}

/* The rows are of @age_s ago.  Returns how many questions there are once the share is decided. */
static size_t last_questions(int64_t age_s, const char *deleting)
{
    struct share_state_fields state = {
        .cfg = FOLD_CFG, .users = "g", .b = "6", .deleting = deleting};
    enum log_fate fates[BATCH_LOGS] = {LOG_COUNTS, LOG_COUNTS};
    struct buffer out;
    uint32_t log = 0;
    (void)redis_clock_seen(&fixture.core->clock, FOLD_NOW_S * 1000000);
    for (size_t i = 0; i < fixture.batch.n_rows; i++) {
        fixture.batch.rows[i].at_s -= age_s;
    }
    fixture_begin();
    cr_expect_eq(share_asks_last(fixture.share), age_s > 0);
    fixture_look(&state);
    cr_assert_eq(share_decide(fixture.share, fates, SHARE_NOW_MS, &log), SHARE_FOLDS);
    size_t n = answer_step(SHARE_LAST, 0);
    cr_expect_eq(answer_step(SHARE_HOURS, 0), 0u, "their days have none of the names");
    cr_expect_eq(answer_step(SHARE_MINUTES, 0), 0u);
    cr_expect(share_fits(fixture.share));
    buffer_init(&out);
    (void)share_write_commands(fixture.share, &out);
    cr_expect_eq(memmem(out.p, out.n, "ZINCRBY", 7) != NULL, n == 0 && age_s > 0);
    buffer_release(&out);
    return n;
}

Test(share_questions, asks_what_old_buckets_have)
{
    cr_expect_gt(last_questions(40 * 86400, NULL), 3u, "day and month of two tables");
}

Test(share_questions, asks_nothing_of_recent_minutes)
{
    cr_expect_eq(last_questions(0, NULL), 0u);
}

/* A deletion takes counters away between the question and the transaction. */
Test(share_questions, asks_nothing_while_a_deletion_sweeps)
{
    cr_expect_eq(last_questions(40 * 86400, "d"), 0u);
}

/* ---- names of closed hours ---- */

/* The rows are of 40 days ago, and a site's hour may have 20 pages. */
static void setup_capped(void)
{
    fixture.core->config.max_pages = 20;
    (void)redis_clock_seen(&fixture.core->clock, FOLD_NOW_S * 1000000);
    for (size_t i = 0; i < fixture.batch.n_rows; i++) {
        fixture.batch.rows[i].at_s -= 40 * 86400;
    }
}

/* A look at hours that have @n_names: does the share go on? */
static bool fits(int64_t n_names, const char *deleting)
{
    struct share_state_fields state = {
        .cfg = FOLD_CFG, .users = "g", .b = "6", .deleting = deleting};
    cr_assert_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    (void)answer_step(SHARE_LAST, n_names);
    (void)answer_step(SHARE_HOURS, n_names);
    return share_fits(fixture.share);
}

/* How many commands of a kind the share's questions are. */
static size_t first_questions(const char *name)
{
    struct buffer out;
    struct commands questions;
    size_t n = 0;
    buffer_init(&out);
    (void)share_write(fixture.share, SHARE_STATE, &out);
    cr_assert(commands_read(&out, &questions));
    for (size_t i = 0; i < questions.n; i++) {
        n += command_is(&questions.commands[i], 0, name);
    }
    commands_release(&questions);
    buffer_release(&out);
    return n;
}

Test(share_questions, names_of_closed_hours_fit_or_not, .init = setup_capped)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g", .b = "6"};
    fixture_know_view(false);
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_AGAIN,
        "no hour was known to be closed");
    fixture_begin();
    cr_expect(share_asks_last(fixture.share));
    cr_expect(fits(0, NULL));
    fixture_begin();
    cr_expect_eq(first_questions("ZCARD"), 0u);
    fixture_begin();
    cr_expect_not(fits(19, NULL));
    fixture_begin();
    cr_expect_gt(first_questions("ZCARD"), 0u, "the counters of closed hours come first");
}

Test(share_questions, a_cap_that_was_near_is_looked_at_for_a_while, .init = setup_capped)
{
    size_t n = 0;
    fixture_begin();
    cr_expect_not(fits(19, NULL));
    do {
        fixture_begin();
        n++;
    } while (n < 100 && first_questions("ZCARD") > 0);
    cr_expect(n > 2 && n < 100);
    fixture_begin();
    cr_expect(fits(0, NULL));
}

/* The counters that a deletion takes away tell nothing. */
Test(share_questions, names_of_closed_hours_while_a_deletion_sweeps, .init = setup_capped)
{
    fixture_begin();
    cr_expect_not(fits(0, "d"));
}

#include "storage/fold/share.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/commands.h"
#include "tests/lib/share_fixture.h"

/* What a share counts, and what it remembers, when sites or pages are deleted. */
TestSuite(share_deletion, .init = fixture_setup, .fini = fixture_teardown, .timeout = 60);

/* ---- sites that were deleted ---- */

/* How many commands beside that of the state, and the events that are done with. */
static void expect_counted(const char *deleted, bool counts, size_t events)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .b = "6", .deleted = deleted};
    struct buffer out;
    buffer_init(&out);
    fixture_begin();
    cr_expect_eq(
        fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS, "the cursors move on");
    cr_expect_eq(share_write_commands(fixture.share, &out) > 1, counts, "%s", deleted);
    cr_expect_eq((size_t)fixture_shown().fold_events, events);
    buffer_release(&out);
}

Test(share_deletion, counts_nothing_of_a_site_that_is_deleted)
{
    char text[100];
    expect_counted(NULL, true, SHARE_ROWS);
    expect_counted("shop 0 id\n", false, SHARE_ROWS);
    expect_counted("other 0 id\n", true, SHARE_ROWS);
    (void)snprintf(text, sizeof(text), "other 0 i\nshop %lld id\n", (long long)SHARE_NOW_MS);
    expect_counted(text, true, SHARE_ROWS); /* all arrived then or later */
    (void)snprintf(text, sizeof(text), "shop %lld id\n", (long long)SHARE_NOW_MS + 2001);
    expect_counted(text, false, SHARE_ROWS);
}

/* Each has a line for minutes after it is gone: as many as may be under way, and more. */
Test(share_deletion, counts_beside_many_sites_that_were_deleted)
{
    static char text[200 * 100];
    size_t n = 0;
    for (int i = 0; i < 200; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%064d 1 0123456789abcdef\n", i);
    }
    struct share_state_fields state = {.cfg = FOLD_CFG, .b = "6", .deleted = text};
    struct buffer out;
    buffer_init(&out);
    fixture.core->config.max_pages = 1000;
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    cr_expect_gt(share_write_commands(fixture.share, &out), 1u);
    share_learn(fixture.share);
    buffer_release(&out);
    text[n - 2] = 'e'; /* another deletion of the last one */
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_AGAIN);
}

/* ---- what was remembered ---- */

/* The place of a known name holds no longer when a site was deleted: the site's places are gone. */
Test(share_deletion, begins_again_when_a_site_was_deleted)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    struct buffer out;
    buffer_init(&out);
    fixture.core->config.max_pages = 1000;
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    cr_assert_gt(share_write_commands(fixture.share, &out), 1u);
    share_learn(fixture.share);
    known_visitors_forget(&fixture.shared.visitors); /* fixture_look() knows no visits */
    fixture.memory.users.partitions[0].era = 0;      /* nor do the rows rely on users */
    state.deleted = "another 1 id\n";
    state.users = "g2"; /* deletion_mark.lua sets both */
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_AGAIN);
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    buffer_release(&out);
}

/* Asks and writes; returns how many questions and commands that were. */
static size_t fold_all(const struct share_state_fields *state, size_t *ret_commands)
{
    struct buffer out;
    buffer_init(&out);
    fixture_begin();
    size_t n = share_write(fixture.share, SHARE_STATE, &out);
    fixture_begin();
    cr_expect_eq(fixture_decide(state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    *ret_commands = share_write_commands(fixture.share, &out);
    share_learn(fixture.share);
    known_visitors_forget(&fixture.shared.visitors); /* fixture_look() knows no visits */
    buffer_release(&out);
    return n;
}

/* The keys of the site are gone: what was known to be there is asked for again, and written. */
Test(share_deletion, knows_no_key_once_a_site_was_deleted)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    size_t first = 0;
    size_t second = 0;
    size_t after = 0;
    fixture.core->config.max_pages = 1000;
    size_t asked = fold_all(&state, &first);
    cr_expect_lt(fold_all(&state, &second), asked);
    cr_expect_lt(second, first);
    state.deleted = "another 1 id\n";
    state.users = "g2"; /* deletion_mark.lua sets both */
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_AGAIN);
    cr_expect_eq(fold_all(&state, &after), asked);
    cr_expect_eq(after, first);
}

/* What a fold writes during a sweep may be deleted again, and the deletion's end tells nobody. */
Test(share_deletion, learns_nothing_while_a_deletion_sweeps)
{
    const struct share_state_fields state = {
        .cfg = FOLD_CFG, .users = "g1", .deleting = "1", .b = "6"};
    size_t first = 0;
    size_t second = 0;
    fixture.core->config.max_pages = 1000;
    size_t asked = fold_all(&state, &first);
    cr_expect_eq(fold_all(&state, &second), asked);
    cr_expect_eq(second, first);
}

/* How many elements the share adds to sketches. */
static size_t elements_written(void)
{
    struct buffer out;
    struct commands commands;
    size_t n = 0;
    buffer_init(&out);
    cr_assert(share_write_commands(fixture.share, &out) > 0 && commands_read(&out, &commands));
    for (size_t i = 0; i < commands.n; i++) {
        bool adds = command_is(&commands.commands[i], 0, "PFADD");
        n += adds ? commands.commands[i].n - 2 : 0;
    }
    commands_release(&commands);
    buffer_release(&out);
    return n;
}

/* How many expiries the share sets. */
static size_t expiries_written(void)
{
    struct buffer out;
    struct commands commands;
    size_t n = 0;
    buffer_init(&out);
    cr_assert(share_write_commands(fixture.share, &out) > 0 && commands_read(&out, &commands));
    for (size_t i = 0; i < commands.n; i++) {
        n += command_is(&commands.commands[i], 0, "PEXPIREAT");
    }
    commands_release(&commands);
    buffer_release(&out);
    return n;
}

Test(share_deletion, knows_no_expiry_once_a_site_was_deleted)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g1", .a = "3", .b = "6"};
    struct log_entry *late = fold_entry(SHARE_LOG_A, 4, FOLD_NOW_S - 3 * 3600, 1);
    fixture.core->config.retention.keep_s[LEVEL_MINUTE] = 48 * 3600;
    batch_clear(&fixture.batch);
    cr_assert(
        batch_add_log(&fixture.batch, SHARE_LOG_A, 3) != NULL && batch_add(&fixture.batch, late));
    cr_assert(batch_add_log(&fixture.batch, SHARE_LOG_B, 6) != NULL &&
              batch_finish(&fixture.batch, fixture.core));
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    size_t all = expiries_written();
    share_learn(fixture.share);
    known_visitors_forget(&fixture.shared.visitors); /* fixture_look() knows no visits */
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    cr_expect_lt(expiries_written(), all, "of %zu", all);
    state.users = "g2";
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    cr_expect_eq(expiries_written(), all);
}

/* What a sketch is known to hold goes with the users: a deletion of pages changes the generation.
 */
Test(share_deletion, knows_no_sketch_once_pages_were_deleted)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    struct log_entry *entry = fold_entry(SHARE_LOG_A, 4, FOLD_NOW_S, 600);
    batch_clear(&fixture.batch);
    cr_assert(
        batch_add_log(&fixture.batch, SHARE_LOG_A, 3) != NULL && batch_add(&fixture.batch, entry));
    cr_assert(batch_add_log(&fixture.batch, SHARE_LOG_B, 6) != NULL &&
              batch_finish(&fixture.batch, fixture.core));
    state.a = "3";
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    size_t all = elements_written();
    share_learn(fixture.share);
    known_visitors_forget(&fixture.shared.visitors); /* fixture_look() knows no visits */
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    cr_expect_lt(elements_written(), all / 2, "of %zu", all);
    state.users = "g2";
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    cr_expect_eq(elements_written(), all);
}

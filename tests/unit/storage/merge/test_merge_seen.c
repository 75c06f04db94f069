#include "storage/merge/merge_seen.h"

#include <criterion/criterion.h>

#include "storage/seen/layout.h"
#include "tests/lib/commands.h"
#include "tests/lib/row_sites.h"

TestSuite(merge_seen, .timeout = 60);

#define NOW_S  INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */
#define KEEP_S (92 * INT64_C(86400))

static struct row row_of(const char *site, uint64_t page, uint8_t user)
{
    struct row row = {.site = row_site_of(site), .page_hash = page, .is_view = true};
    row.user_id.bytes[0] = user;
    return row;
}

static void check_log(
    const struct command *command, const char *key, const struct row *const *rows, size_t n)
{
    cr_assert(command_is(command, 0, "APPEND") && command_is(command, 1, key));
    cr_assert_eq(command->words[2].n, 8 * n);
    for (size_t i = 0; i < n; i++) {
        uint64_t expected = seen_fingerprint(&rows[i]->user_id, rows[i]->page_hash);
        cr_expect(memcmp(command->words[2].p + 8 * i, &expected, 8) == 0, "pair %zu", i);
    }
}

/* A log a site and month of arrival; a pair that repeats at once is there once. */
Test(merge_seen, logs_of_two_sites_and_months)
{
    const struct row rows[] = {row_of("shop", 1, 1), row_of("shop", 1, 1), row_of("blog", 1, 1),
        row_of("shop", 1, 1), row_of("shop", 2, 1), row_of("shop", 1, 1), row_of("shop", 1, 2),
        row_of("shop", 9, 9)};
    const struct row *const of_shop[] = {&rows[0], &rows[4], &rows[5], &rows[6]};
    const struct row *const of_blog[] = {&rows[2]};
    const struct row *const of_october[] = {&rows[7]};
    struct merge_seen *merge = merge_seen_new();
    struct buffer out;
    struct commands commands;
    buffer_init(&out);
    cr_assert(merge != NULL);
    cr_assert(merge_seen_add(merge, &rows[0], NOW_S));
    merge_seen_clear(merge);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert(merge_seen_add(merge, &rows[i], i == 7 ? NOW_S - 30 * 86400 : NOW_S));
    }
    cr_expect_eq(merge_seen_write(merge, "7", KEEP_S, NOW_S * 1000, &out), 6u);
    cr_assert(commands_read(&out, &commands));
    cr_assert_eq(commands.n, 6u);
    check_log(&commands.commands[0], "t:{7}:seen:shop:M202611010000:log", of_shop, 4);
    check_log(&commands.commands[2], "t:{7}:seen:blog:M202611010000:log", of_blog, 1);
    check_log(&commands.commands[4], "t:{7}:seen:shop:M202610010000:log", of_october, 1);
    const struct command *expiry = &commands.commands[1];
    cr_expect(command_is(expiry, 0, "PEXPIREAT") && command_is(expiry, 3, "NX"));
    cr_expect(slice_equal(expiry->words[1], commands.commands[0].words[1]));
    cr_expect_eq(command_number(expiry, 2), 1804032000000); /* 92 days after the month */
    commands_release(&commands);
    buffer_release(&out);
    merge_seen_free(merge);
}

/* A log is due when it passes a multiple of its size; one whose time is over is passed over. */
Test(merge_seen, logs_that_are_due)
{
    const struct row rows[] = {row_of("shop", 1, 1), row_of("blog", 1, 1), row_of("old", 1, 1)};
    struct merge_seen *merge = merge_seen_new();
    struct buffer out;
    struct buffer due;
    buffer_init(&out);
    buffer_init(&due);
    cr_assert(merge_seen_add(merge, &rows[2], NOW_S - 300 * 86400));
    cr_assert(merge_seen_add(merge, &rows[0], NOW_S));
    cr_assert(merge_seen_add(merge, &rows[1], NOW_S));
    cr_expect_eq(merge_seen_write(merge, "7", KEEP_S, NOW_S * 1000, &out), 4u);
    struct reply replies[4] = {{.type = REPLY_INTEGER, .integer = 2 * SEEN_LOG_BYTES + 8},
        {.type = REPLY_INTEGER}, {.type = REPLY_INTEGER, .integer = 2 * SEEN_LOG_BYTES},
        {.type = REPLY_INTEGER}};
    merge_seen_due(merge, "7", KEEP_S, NOW_S * 1000, replies, &due);
    cr_expect(
        slice_equal((struct slice){due.p, due.n}, SLICE("t:{7}:seen:blog:M202611010000:log ")),
        "%.*s", (int)due.n, due.p);
    buffer_release(&out);
    buffer_release(&due);
    merge_seen_free(merge);
}

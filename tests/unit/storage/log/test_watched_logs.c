/* test_watched_logs.c - since when a log has been seen as it is: storage/log/watched_logs.h */
#include "storage/log/watched_logs.h"

#include <criterion/criterion.h>
#include <string.h>

#define APART_MS 1000

static struct watched_logs logs;

static void teardown(void)
{
    watched_logs_release(&logs);
}

TestSuite(watched_logs, .fini = teardown);

static bool stands(const struct log_head *head, int64_t now_ms)
{
    const struct watched_log *log = watched_logs_see(&logs, head, now_ms);
    cr_assert_not_null(log);
    return watched_log_stands(log, now_ms, APART_MS);
}

/* The log @id is seen with this head at @now_ms, and no other.  Long enough? */
static bool look(const char *id, uint64_t n, int64_t time_ms, int64_t now_ms)
{
    struct log_head head = {.n = n, .time_ms = time_ms};
    memcpy(head.id, id, sizeof(head.id));
    bool is_long = stands(&head, now_ms);
    watched_logs_keep(&logs);
    return is_long;
}

#define ONE "00000000000000aa"
#define TWO "00000000000000bb"

Test(watched_logs, once_is_not_enough_however_late)
{
    cr_expect_not(look(ONE, 5, 7, 0));
    cr_expect_not(look(TWO, 5, 7, APART_MS * 9));
}

Test(watched_logs, twice_as_far_apart_as_a_server_can_go_back)
{
    cr_expect_not(look(ONE, 5, 7, 100));
    cr_expect_not(look(ONE, 5, 7, 100));
    cr_expect_not(look(ONE, 5, 7, 100 + APART_MS - 1));
    cr_expect(look(ONE, 5, 7, 100 + APART_MS));
    cr_expect(look(ONE, 5, 7, 100 + 2 * APART_MS));
}

Test(watched_logs, another_head_begins_anew)
{
    cr_expect_not(look(ONE, 5, 7, 0));
    cr_expect_not(look(ONE, 6, 7, APART_MS), "it has grown");
    cr_expect_not(look(ONE, 6, 8, APART_MS + 1), "its writer was heard of");
    cr_expect_not(look(ONE, 6, 8, 2 * APART_MS));
    cr_expect(look(ONE, 6, 8, 2 * APART_MS + 1));
}

Test(watched_logs, what_was_not_seen_meanwhile_begins_anew)
{
    cr_expect_not(look(ONE, 5, 7, 0));
    cr_expect_not(look(TWO, 1, 1, APART_MS / 2));
    cr_expect_not(look(ONE, 5, 7, APART_MS));
    cr_expect_eq(logs.n, 1u);
}

Test(watched_logs, each_has_a_time_of_its_own)
{
    struct log_head one = {.n = 1};
    struct log_head two = {.n = 1};
    memcpy(one.id, ONE, sizeof(one.id));
    memcpy(two.id, TWO, sizeof(two.id));
    cr_expect_not(stands(&one, 0));
    watched_logs_keep(&logs);
    cr_expect_not(stands(&one, 500));
    cr_expect_not(stands(&two, 500));
    watched_logs_keep(&logs);
    cr_expect(stands(&one, APART_MS));
    cr_expect_not(stands(&two, APART_MS));
}

/* Of one server that cannot go back nothing but the second look tells. */
Test(watched_logs, twice_also_where_no_time_need_pass)
{
    struct log_head one = {.id = ONE};
    cr_expect_not(watched_log_stands(watched_logs_see(&logs, &one, 0), 0, 0));
    watched_logs_keep(&logs);
    cr_expect(watched_log_stands(watched_logs_see(&logs, &one, 0), 0, 0));
}

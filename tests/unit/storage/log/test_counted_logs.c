/* test_counted_logs.c - since when a silent log has been seen counted: storage/log/counted_logs.h
 */
#include "storage/log/counted_logs.h"

#include <criterion/criterion.h>
#include <string.h>

#define APART_MS 1000

static struct counted_logs logs;

static void teardown(void)
{
    counted_logs_release(&logs);
}

TestSuite(counted_logs, .fini = teardown);

/* The log @id is counted up to @n at @now_ms, and all others are not.  Long enough? */
static bool look(const char *id, uint64_t n, int64_t time_ms, int64_t now_ms)
{
    struct log_head head = {.n = n, .time_ms = time_ms};
    memcpy(head.id, id, sizeof(head.id));
    bool is_long = counted_logs_long(&logs, &head, now_ms, APART_MS);
    counted_logs_keep(&logs);
    return is_long;
}

#define ONE "00000000000000aa"
#define TWO "00000000000000bb"

Test(counted_logs, once_is_not_enough_however_late)
{
    cr_expect_not(look(ONE, 5, 7, 0));
    cr_expect_not(look(TWO, 5, 7, APART_MS * 9));
}

Test(counted_logs, twice_as_far_apart_as_a_server_can_go_back)
{
    cr_expect_not(look(ONE, 5, 7, 100));
    cr_expect_not(look(ONE, 5, 7, 100));
    cr_expect_not(look(ONE, 5, 7, 100 + APART_MS - 1));
    cr_expect(look(ONE, 5, 7, 100 + APART_MS));
    cr_expect(look(ONE, 5, 7, 100 + 2 * APART_MS));
}

Test(counted_logs, another_head_begins_anew)
{
    cr_expect_not(look(ONE, 5, 7, 0));
    cr_expect_not(look(ONE, 6, 7, APART_MS), "it has grown");
    cr_expect_not(look(ONE, 6, 8, APART_MS + 1), "its writer was heard of");
    cr_expect_not(look(ONE, 6, 8, 2 * APART_MS));
    cr_expect(look(ONE, 6, 8, 2 * APART_MS + 1));
}

Test(counted_logs, what_was_not_counted_meanwhile_begins_anew)
{
    cr_expect_not(look(ONE, 5, 7, 0));
    cr_expect_not(look(TWO, 1, 1, APART_MS / 2));
    cr_expect_not(look(ONE, 5, 7, APART_MS));
    cr_expect_eq(logs.n, 1u);
}

Test(counted_logs, each_has_a_time_of_its_own)
{
    struct log_head one = {.n = 1};
    struct log_head two = {.n = 1};
    memcpy(one.id, ONE, sizeof(one.id));
    memcpy(two.id, TWO, sizeof(two.id));
    cr_expect_not(counted_logs_long(&logs, &one, 0, APART_MS));
    counted_logs_keep(&logs);
    cr_expect_not(counted_logs_long(&logs, &one, 500, APART_MS));
    cr_expect_not(counted_logs_long(&logs, &two, 500, APART_MS));
    counted_logs_keep(&logs);
    cr_expect(counted_logs_long(&logs, &one, APART_MS, APART_MS));
    cr_expect_not(counted_logs_long(&logs, &two, APART_MS, APART_MS));
}

#include "storage/core/deletions.h"

#include <criterion/criterion.h>

/* When entries arrive, and which sites are refused. */
TestSuite(deletions, .timeout = 60);

#define ID "0123456789abcdef"

static struct reply word(const char *text)
{
    return (struct reply){.type = REPLY_TEXT, .text = slice_of(text)};
}

static void learn(
    struct deletions *deletions, const char *field, const char *record, int64_t redis_ms)
{
    struct reply items[] = {word(field), word(record)};
    struct reply list = {.type = REPLY_ARRAY, .items = items, .n = 2};
    deletions_learn(deletions, &list, redis_ms);
}

Test(deletions, a_clock_that_is_set_back_behind_a_deletion)
{
    static struct deletions deletions;
    deletions_init(&deletions);
    cr_expect_eq(deletions_arrival_ms(&deletions, 5), 5);
    learn(&deletions, "blog", ID " 990000 1000", 900);
    cr_expect_eq(deletions_arrival_ms(&deletions, 900), 900, "it is not over");
    cr_expect(deletions_refuse_site(&deletions, SLICE("blog"), 999));
    cr_expect_not(deletions_refuse_site(&deletions, SLICE("blog"), 1000));
    cr_expect_not(deletions_refuse_site(&deletions, SLICE("shop"), 900));
    learn(&deletions, "blog", ID " 990000 1000", 1000);
    cr_expect_eq(deletions_arrival_ms(&deletions, 400), 1000);
    cr_expect_not(deletions_refuse_site(&deletions, SLICE("blog"), 400));
    cr_expect_eq(deletions_arrival_ms(&deletions, 1001), 1001);
    deletions_learn_over(&deletions, 700);
    cr_expect_eq(deletions_arrival_ms(&deletions, 400), 1000, "the latest one");
    deletions_learn_over(&deletions, 2000);
    cr_expect_eq(deletions_arrival_ms(&deletions, 400), 2000);
    deletions_release(&deletions);
}

Test(deletions, one_that_has_left_the_list_is_over)
{
    static struct deletions deletions;
    struct reply empty = {.type = REPLY_ARRAY};
    deletions_init(&deletions);
    learn(&deletions, "blog\n=/p", ID " 990000 1000", 400);
    cr_expect_eq(deletions_arrival_ms(&deletions, 400), 400);
    deletions_learn(&deletions, &empty, 400);
    cr_expect_eq(deletions_arrival_ms(&deletions, 400), 1000);
    deletions_release(&deletions);
}

Test(deletions, that_of_pages_counts_and_refuses_nothing)
{
    static struct deletions deletions;
    deletions_init(&deletions);
    learn(&deletions, "blog\n=/p", ID " 990000 1000", 1000);
    cr_expect_not(deletions_refuse_site(&deletions, SLICE("blog"), 1));
    cr_expect_eq(deletions_arrival_ms(&deletions, 400), 1000);
    learn(&deletions, "blog", ID " 0 0", 1000);
    cr_expect(deletions_refuse_site(&deletions, SLICE("blog"), 1000000), "it has no instant");
    deletions_release(&deletions);
}

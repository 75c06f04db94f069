#include "storage/read/repeat.h"

#include <criterion/criterion.h>

/* Begun, settled at once, and answered. */
static void ask(
    struct repeats *repeats, uint64_t question, int64_t begun_us, int64_t now_us, size_t answered)
{
    repeat_begin(repeats, question, begun_us);
    cr_assert(repeat_settled(repeats, question));
    repeat_end(repeats, question, begun_us, now_us, answered);
}

Test(repeat, who_asks_alone_is_never_held_back)
{
    static struct repeats repeats;
    for (int64_t now_us = 1000; now_us < 100000; now_us += 1000) {
        cr_assert(repeat_due_us(&repeats, 7) <= now_us);
        ask(&repeats, 7, now_us, now_us + 900, 1);
    }
}

Test(repeat, a_crowded_question_waits_as_long_as_it_is_dear)
{
    static struct repeats repeats;
    ask(&repeats, 7, 1000, 1100, 5);
    cr_assert_eq(repeat_due_us(&repeats, 7), 1100 + 8 * 100);
    cr_assert_eq(repeat_due_us(&repeats, 9), 0, "another one");
    cr_assert_eq(repeat_due_us(&repeats, 0), 0, "of a kind that is never the same");

    repeat_begin(&repeats, 7, 2000);
    cr_assert(repeat_settled(&repeats, 7));
    cr_assert_eq(repeat_due_us(&repeats, 7), 2000 + REPEAT_HOLD_MAX_US, "while it is read");
    repeat_end(&repeats, 7, 2000, 12000, 2);
    cr_assert_eq(repeat_due_us(&repeats, 7), 2000 + REPEAT_HOLD_MAX_US, "at most");

    ask(&repeats, 7, 30000, 90000, 2);
    cr_assert(repeat_due_us(&repeats, 7) <= 90000, "it has taken longer than that: at once");

    ask(&repeats, 7, 90000, 90100, 1);
    cr_assert_eq(repeat_due_us(&repeats, 7), 0, "not crowded any more");
}

Test(repeat, another_question_takes_the_place)
{
    static struct repeats repeats;
    repeat_end(&repeats, 3, 0, 1000, 5);
    repeat_end(&repeats, 3 + 2 * REPEATS, 0, 1000, 5);
    cr_assert_eq(repeat_due_us(&repeats, 3), 0);
    cr_assert(repeat_due_us(&repeats, 3 + 2 * REPEATS) > 1000);
    repeat_end(&repeats, 0, 0, 1000, 5);
    cr_assert(repeat_due_us(&repeats, 3 + 2 * REPEATS) > 1000, "0 has no place");
}

Test(repeat, none_is_begun_while_the_same_one_is_settled)
{
    static struct repeats repeats;
    repeat_begin(&repeats, 7, 1000);
    cr_assert_eq(repeat_due_us(&repeats, 7), INT64_MAX);
    cr_assert_eq(repeat_due_us(&repeats, 9), 0, "another one");
    repeat_begin(&repeats, 7 + 2 * REPEATS, 1000);
    cr_assert_eq(repeat_due_us(&repeats, 7), INT64_MAX, "its place is not taken from it");
    cr_assert_eq(repeat_due_us(&repeats, 7 + 2 * REPEATS), 0, "so another one is not held back");
    cr_assert_not(repeat_settled(&repeats, 7 + 2 * REPEATS));
    cr_assert(repeat_settled(&repeats, 7));
    cr_assert_not(repeat_settled(&repeats, 7), "no news");
    cr_assert_eq(repeat_due_us(&repeats, 7), 0);

    repeat_begin(&repeats, 7, 2000); /* another reader begins with it.. */
    repeat_end(&repeats, 7, 1000, 2500, 3);
    cr_assert_eq(repeat_due_us(&repeats, 7), INT64_MAX, "..when the first one answers");
}

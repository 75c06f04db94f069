#include "storage/read/repeat.h"

#include <criterion/criterion.h>

Test(repeat, who_asks_alone_is_never_held_back)
{
    static struct repeats repeats;
    for (int64_t now_us = 1000; now_us < 100000; now_us += 1000) {
        cr_assert(repeat_due_us(&repeats, 7) <= now_us);
        repeat_begin(&repeats, 7, now_us);
        repeat_end(&repeats, 7, now_us, now_us + 900, 1);
    }
}

Test(repeat, a_crowded_question_waits_as_long_as_it_is_dear)
{
    static struct repeats repeats;
    repeat_begin(&repeats, 7, 1000);
    repeat_end(&repeats, 7, 1000, 1100, 5);
    cr_assert_eq(repeat_due_us(&repeats, 7), 1100 + 8 * 100);
    cr_assert_eq(repeat_due_us(&repeats, 9), 0, "another one");
    cr_assert_eq(repeat_due_us(&repeats, 0), 0, "of a kind that is never the same");

    repeat_begin(&repeats, 7, 2000);
    cr_assert_eq(repeat_due_us(&repeats, 7), 2000 + REPEAT_HOLD_MAX_US, "while it is read");
    repeat_end(&repeats, 7, 2000, 12000, 2);
    cr_assert_eq(repeat_due_us(&repeats, 7), 2000 + REPEAT_HOLD_MAX_US, "at most");

    repeat_begin(&repeats, 7, 30000);
    repeat_end(&repeats, 7, 30000, 90000, 2);
    cr_assert(repeat_due_us(&repeats, 7) <= 90000, "it has taken longer than that: at once");

    repeat_begin(&repeats, 7, 90000);
    repeat_end(&repeats, 7, 90000, 90100, 1);
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

#include "storage/core/standing.h"

#include <criterion/criterion.h>

TestSuite(standing, .timeout = 60);

Test(standing, nothing_is_known_without_a_connection)
{
    struct standing s;
    standing_init(&s, false);
    cr_expect_not(standing_held(&s, 100, 200));
    cr_expect(standing_awaits(&s, 100, 200));
    standing_answered(&s, 300);
    cr_expect_not(standing_held(&s, 100, 200));
}

Test(standing, one_connection_proves_what_it_has_outlived)
{
    struct standing s;
    standing_init(&s, false);
    standing_begin(&s, 99);
    cr_expect_not(standing_held(&s, 100, 200));
    cr_expect(standing_awaits(&s, 100, 200));
    standing_answered(&s, 199);
    cr_expect_not(standing_held(&s, 100, 200));
    standing_answered(&s, 200);
    cr_expect(standing_held(&s, 100, 200));
    cr_expect_not(standing_awaits(&s, 100, 200), "it is known");
    cr_expect_not(standing_held(&s, 99, 200), "the connection may have come a little later");
    cr_expect_not(standing_awaits(&s, 99, 200), "and no other one will tell");
}

/* What the old connection has answered says nothing of the time between the two. */
Test(standing, another_connection_begins_anew)
{
    struct standing s;
    standing_init(&s, false);
    standing_begin(&s, 50);
    standing_answered(&s, 150);
    standing_end(&s);
    cr_expect_not(standing_held(&s, 100, 150));
    standing_begin(&s, 160);
    standing_answered(&s, 400);
    cr_expect_not(standing_held(&s, 100, 200));
    cr_expect_not(standing_awaits(&s, 100, 200), "read again");
    cr_expect(standing_held(&s, 161, 400));
}

Test(standing, the_latest_wish_counts)
{
    struct standing s;
    standing_init(&s, false);
    standing_want(&s, 200);
    standing_want(&s, 100);
    cr_expect_eq(atomic_load(&s.wanted_ms), 200);
    standing_want(&s, 300);
    cr_expect_eq(atomic_load(&s.wanted_ms), 300);
}

static void count_wishes(void *data)
{
    ++*(int *)data;
}

Test(standing, replicas_must_have_what_was_written_later)
{
    struct standing s;
    int wishes = 0;
    standing_init(&s, true);
    s.on_want = count_wishes;
    s.on_want_data = &wishes;
    standing_begin(&s, 50);
    cr_expect_eq(standing_wanted_ms(&s), INT64_MIN);
    standing_want(&s, 200);
    standing_answered(&s, 300);
    standing_acked(&s, 199);
    cr_expect_not(standing_held(&s, 100, 200));
    cr_expect(standing_awaits(&s, 100, 200));
    cr_expect_eq(standing_wanted_ms(&s), 200);
    standing_acked(&s, 200);
    cr_expect(standing_held(&s, 100, 200));
    cr_expect_eq(standing_wanted_ms(&s), INT64_MIN, "it is known");
    cr_expect_eq(wishes, 1);
}

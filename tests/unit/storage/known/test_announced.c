/* Which members of `open` were announced: the latest ones, each of one partition. */
#include "storage/known/announced.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(announced, .timeout = 60);

static struct slice member_of(unsigned number)
{
    static char text[32];
    int n = snprintf(text, sizeof(text), "site:h%u", number);
    return (struct slice){text, (size_t)n};
}

/* An hour that is announced in one partition must be announced in another one, too: else that
 * partition is never rolled up. */
Test(announced, each_partition_has_its_own)
{
    struct announced announced = {.n = 0};
    announced_add(&announced, 3, member_of(1));
    cr_expect(announced_has(&announced, 3, member_of(1)));
    cr_expect_not(announced_has(&announced, 4, member_of(1)));
    cr_expect_not(announced_has(&announced, 3, member_of(2)));
    announced_forget(&announced);
    cr_expect_not(announced_has(&announced, 3, member_of(1)));
}

Test(announced, the_oldest_one_makes_room)
{
    struct announced announced = {.n = 0};
    for (unsigned i = 0; i < ANNOUNCED_MAX; i++) {
        announced_add(&announced, 0, member_of(i));
        announced_add(&announced, 0, member_of(0)); /* it is there already, and takes no room */
    }
    for (unsigned i = ANNOUNCED_MAX; i < 3 * ANNOUNCED_MAX; i++) {
        announced_add(&announced, 0, member_of(i));
        for (unsigned k = 0; k <= i; k++) {
            cr_assert_eq(announced_has(&announced, 0, member_of(k)), k + ANNOUNCED_MAX > i);
        }
    }
    announced_forget(&announced);
}

#include "storage/known/known_users.h"

#include <criterion/criterion.h>

#include "tests/lib/dice.h"

TestSuite(known_users, .timeout = 60);

static struct visitor_id id_of(uint64_t number)
{
    struct dice dice = dice_make(number + 1);
    struct visitor_id id;
    dice_bytes(&dice, id.bytes, sizeof(id.bytes));
    return id;
}

static bool knows(const struct known_users *users, unsigned partition, uint64_t number)
{
    struct visitor_id id = id_of(number);
    const struct known_user *user = known_users_find(users, partition, &id);
    if (user != NULL) { /* never a wrong one */
        cr_assert_eq(user->index, (uint32_t)number);
    }
    return user != NULL;
}

static void add(struct known_users *users, unsigned partition, uint64_t number)
{
    struct visitor_id id = id_of(number);
    known_users_add(users, partition, &id, (uint32_t)number, 20000);
}

Test(known_users, nothing_is_known_without_a_generation)
{
    struct known_users users = {0};
    add(&users, 0, 1);
    cr_expect(!knows(&users, 0, 1));
    cr_expect_str_eq(known_users_relied_on(&users, 0), "");
    known_users_generation(&users, 0, SLICE(""));
    add(&users, 0, 1);
    cr_expect(!knows(&users, 0, 1));
    known_users_release(&users);
}

Test(known_users, of_one_generation_and_partition)
{
    struct known_users users = {0};
    known_users_generation(&users, 0, SLICE("-"));
    known_users_generation(&users, 5, SLICE("-"));
    add(&users, 0, 1);
    add(&users, 5, 2);
    known_users_generation(&users, 0, SLICE("-")); /* the same as before */
    cr_expect(knows(&users, 0, 1) && knows(&users, 5, 2));
    cr_expect(!knows(&users, 5, 1) && !knows(&users, 0, 2));
    cr_expect_str_eq(known_users_relied_on(&users, 0), "-");

    known_users_generation(&users, 0, SLICE("0123456789abcdef0123456789abcdef"));
    cr_expect(!knows(&users, 0, 1) && knows(&users, 5, 2));
    cr_expect_str_eq(known_users_relied_on(&users, 0), "0123456789abcdef0123456789abcdef");
    known_users_generation(&users, 0, SLICE("-")); /* the data went back */
    cr_expect(!knows(&users, 0, 1));

    add(&users, 0, 1);
    cr_expect(knows(&users, 0, 1));
    known_users_generation(&users, 0, SLICE(""));
    cr_expect(!knows(&users, 0, 1) && knows(&users, 5, 2));
    cr_expect_str_eq(known_users_relied_on(&users, 0), "");
    known_users_generation(&users, 0, SLICE("-"));
    add(&users, 0, 1);
    known_users_forget_all(&users);
    cr_expect(!knows(&users, 0, 1) && !knows(&users, 5, 2));
    known_users_release(&users);
}

Test(known_users, a_name_that_is_too_long_is_no_generation)
{
    struct known_users users = {0};
    known_users_generation(&users, 0, SLICE("0123456789abcdef0123456789abcdef!"));
    add(&users, 0, 1);
    cr_expect(!knows(&users, 0, 1));
    known_users_release(&users);
}

Test(known_users, the_last_word_holds)
{
    struct known_users users = {0};
    struct visitor_id id = id_of(7);
    known_users_generation(&users, 0, SLICE("-"));
    known_users_add(&users, 0, &id, 7, 100);
    known_users_add(&users, 0, &id, 7, 101);
    const struct known_user *user = known_users_find(&users, 0, &id);
    cr_assert(user != NULL);
    cr_expect_eq(user->active_day, 101);
    known_users_release(&users);
}

/* Far more users than it holds: it stays as large, most of the last ones are known, none is taken
 * for another. */
Test(known_users, bounded)
{
    struct known_users users = {0};
    uint64_t total = 3 * (uint64_t)KNOWN_USERS_MAX;
    uint64_t known = 0;
    known_users_generation(&users, 3, SLICE("-"));
    for (uint64_t i = 0; i < total; i++) {
        add(&users, 3, i);
        cr_assert(knows(&users, 3, i));
    }
    for (uint64_t i = 0; i < total; i++) {
        known += knows(&users, 3, i);
    }
    cr_expect_leq(known, (uint64_t)KNOWN_USERS_MAX);
    cr_expect_gt(known, (uint64_t)KNOWN_USERS_MAX * 9 / 10);
    known_users_release(&users);
}

/* Numbers of eras begin again: nothing of before is taken for known. */
Test(known_users, eras_that_begin_again)
{
    struct known_users users = {0};
    known_users_generation(&users, 0, SLICE("-"));
    add(&users, 0, 1); /* of era 1 */
    known_users_generation(&users, 0, SLICE(""));
    users.eras = UINT32_MAX;
    known_users_generation(&users, 0, SLICE("-"));
    cr_expect(!knows(&users, 0, 1));
    add(&users, 0, 2);
    cr_expect(knows(&users, 0, 2));
    known_users_release(&users);
}

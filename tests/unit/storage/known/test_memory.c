/* What a fold forgets when keys may be gone, and when the data may have gone back. */
#include "storage/known/memory.h"

#include <criterion/criterion.h>

TestSuite(fold_memory, .timeout = 60);

static struct fold_memory memory;
static const struct visitor_id id = {.bytes = {1, 2, 3}};

static void setup(void)
{
    known_hashes_add(&memory.hashes, 7);
    known_users_generation(&memory.users, 0, SLICE("g1"));
    known_users_add(&memory.users, 0, &id, 5, 20000);
    cr_assert_not_null(known_users_find(&memory.users, 0, &id));
    cr_assert_not_null(known_sketches_take(&memory.sketches, 9, KNOWN_SKETCHES_FEW, 1));
}

static void teardown(void)
{
    fold_memory_release(&memory);
}

static void expect_no_keys(void)
{
    cr_expect_not(known_hashes_has(&memory.hashes, 7));
    cr_expect_null(known_sketches_find(&memory.sketches, 9));
}

/* A user's index is no key that expires. */
Test(fold_memory, without_keys_users_are_known, .init = setup, .fini = teardown)
{
    fold_memory_forget_keys(&memory);
    expect_no_keys();
    cr_expect_not_null(known_users_find(&memory.users, 0, &id));
}

/* Data that has gone back may give a user's index to another user. */
Test(fold_memory, nothing_stays_of_other_data, .init = setup, .fini = teardown)
{
    fold_memory_forget(&memory);
    expect_no_keys();
    cr_expect_null(known_users_find(&memory.users, 0, &id));
}

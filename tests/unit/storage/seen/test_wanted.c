#include "storage/seen/wanted.h"

#include <criterion/criterion.h>

TestSuite(wanted, .timeout = 60);

static const uint64_t entries[] = {1, UINT64_C(0x0200000000000000), 3, 7, 7};

static void find(struct wanted *wanted, size_t n)
{
    wanted_find_in_log(wanted, (const char *)entries, n);
}

static bool alone(uint64_t fingerprint, size_t n)
{
    struct wanted wanted = {.pages = NULL};
    cr_assert(wanted_expect(&wanted, 1));
    wanted_add(&wanted, fingerprint);
    find(&wanted, n);
    bool found = wanted_found(&wanted, 0);
    cr_expect_eq(wanted.n_found, found ? 1 : 0);
    wanted_release(&wanted);
    return found;
}

Test(wanted, a_log_is_searched_by_whole_fingerprints)
{
    cr_expect(alone(1, sizeof(entries)));
    cr_expect(alone(3, sizeof(entries)));
    cr_expect_not(alone(2, sizeof(entries)), "2 stands there, between two fingerprints");
    cr_expect_not(alone(3, 16));
    cr_expect_not(alone(3, 23), "half a fingerprint is none");
    cr_expect_not(alone(0, 0));
}

Test(wanted, each_of_many_gets_its_own_answer)
{
    static const uint64_t asked[] = {7, 2, 3, 7, 9, 2, 1};
    static const bool expected[] = {true, false, true, true, false, false, true};
    struct wanted wanted = {.pages = NULL};
    cr_assert(wanted_expect(&wanted, 7));
    for (size_t i = 0; i < 7; i++) {
        wanted_add(&wanted, asked[i]);
    }
    cr_expect_eq(wanted.n_first, 5);
    find(&wanted, 8);
    cr_expect(wanted_found(&wanted, 6) && wanted.n_found == 1);
    find(&wanted, sizeof(entries));
    for (size_t i = 0; i < 7; i++) {
        cr_expect_eq(wanted_found(&wanted, i), expected[i], "%zu", i);
    }
    cr_expect_eq(wanted.n_found, 3);
    wanted_find(&wanted, 5); /* the second one of two */
    cr_expect(wanted_found(&wanted, 1) && wanted_found(&wanted, 5));
    wanted_release(&wanted);
}

Test(wanted, a_thousand_pages)
{
    struct wanted wanted = {.pages = NULL};
    cr_assert(wanted_expect(&wanted, 1000));
    for (uint64_t i = 0; i < 1000; i++) {
        wanted_add(&wanted, i * UINT64_C(0x9e3779b97f4a7c15));
    }
    for (uint64_t i = 0; i < 1000; i += 3) {
        uint64_t fingerprint = i * UINT64_C(0x9e3779b97f4a7c15);
        wanted_find_in_log(&wanted, (const char *)&fingerprint, sizeof(fingerprint));
    }
    for (size_t i = 0; i < 1000; i++) {
        cr_expect_eq(wanted_found(&wanted, i), i % 3 == 0, "%zu", i);
    }
    wanted_release(&wanted);
}

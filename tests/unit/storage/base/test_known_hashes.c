#include "storage/base/known_hashes.h"

#include <criterion/criterion.h>

TestSuite(known_hashes, .timeout = 60);

#define SET_STEP (UINT64_C(1) << 50) /* hashes that differ by less are of one set */

Test(known_hashes, one_replaces_another_where_a_set_is_full)
{
    struct known_hashes known = {0};
    cr_expect_not(known_hashes_has(&known, 7), "no memory was given so far");
    known_hashes_forget(&known);
    for (uint64_t hash = 7; hash < 11; hash++) {
        known_hashes_add(&known, hash);
        known_hashes_add(&known, hash);
        cr_expect(hash == 10 || !known_hashes_has(&known, 0), "an empty place is no hash");
    }
    for (uint64_t hash = 7; hash < 11; hash++) {
        cr_expect(known_hashes_has(&known, hash));
    }
    cr_expect_not(known_hashes_has(&known, 11));
    cr_expect_not(known_hashes_has(&known, 7 + SET_STEP));
    known_hashes_add(&known, 7 + SET_STEP);
    known_hashes_add(&known, 11);
    cr_expect(known_hashes_has(&known, 11) && known_hashes_has(&known, 7 + SET_STEP));
    size_t left = 0;
    for (uint64_t hash = 7; hash < 11; hash++) {
        left += known_hashes_has(&known, hash);
    }
    cr_expect_eq(left, 3u);
    known_hashes_forget(&known);
    cr_expect_not(known_hashes_has(&known, 11));
    known_hashes_add(&known, 8);
    cr_expect(known_hashes_has(&known, 8));
    known_hashes_release(&known);
    cr_expect_not(known_hashes_has(&known, 8));
}

/* A hash that is a product of something that differs in its upper bits only differs in its upper
 * bits only: one name in each of many partitions, say. */
Test(known_hashes, many_that_differ_in_their_upper_bits_have_a_place_each)
{
    struct known_hashes known = {0};
    size_t n = 0;
    for (uint64_t i = 1; i <= 1000; i++) {
        known_hashes_add(&known, (UINT64_C(12345) ^ i << 48) * UINT64_C(0x9e3779b97f4a7c15));
    }
    for (uint64_t i = 1; i <= 1000; i++) {
        n += known_hashes_has(&known, (UINT64_C(12345) ^ i << 48) * UINT64_C(0x9e3779b97f4a7c15));
    }
    cr_expect_eq(n, 1000u);
    known_hashes_release(&known);
}

#include "storage/base/known_hashes.h"

#include <criterion/criterion.h>

TestSuite(known_hashes, .timeout = 60);

Test(known_hashes, one_replaces_another)
{
    struct known_hashes known = {0};
    cr_expect_not(known_hashes_has(&known, 7), "no memory was given so far");
    known_hashes_forget(&known);
    known_hashes_add(&known, 7);
    known_hashes_add(&known, 8);
    cr_expect(known_hashes_has(&known, 7) && known_hashes_has(&known, 8));
    cr_expect_not(known_hashes_has(&known, 7 + KNOWN_HASHES));
    cr_expect_not(known_hashes_has(&known, 0), "an empty place is no hash");
    known_hashes_add(&known, 7 + KNOWN_HASHES);
    cr_expect(known_hashes_has(&known, 7 + KNOWN_HASHES));
    cr_expect_not(known_hashes_has(&known, 7));
    known_hashes_forget(&known);
    cr_expect_not(known_hashes_has(&known, 8));
    known_hashes_add(&known, 8);
    cr_expect(known_hashes_has(&known, 8));
    known_hashes_release(&known);
    cr_expect_not(known_hashes_has(&known, 8));
}

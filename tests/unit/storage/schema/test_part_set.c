#include "storage/schema/part_set.h"

#include <criterion/criterion.h>

TestSuite(part_set, .timeout = 60);

Test(part_set, has_what_was_added_and_nothing_else)
{
    static const unsigned added[] = {
        0, 1, 63, 64, 65, 127, 128, 255, 256, 1000, PARTITIONS_MAX - 1};
    struct part_set set = {{0}};
    for (unsigned p = 0; p < PARTITIONS_MAX; p++) {
        cr_expect(!part_set_has(&set, p), "%u", p);
    }
    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        part_set_add(&set, added[i]);
        part_set_add(&set, added[i]);
        for (unsigned p = 0; p < PARTITIONS_MAX; p++) {
            bool is = false;
            for (size_t j = 0; j <= i; j++) {
                is = is || added[j] == p;
            }
            cr_assert_eq(part_set_has(&set, p), is, "%u", p);
        }
    }
}

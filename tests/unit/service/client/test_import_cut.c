#include "service/client/import_cut.h"

#include <criterion/criterion.h>

#include "tests/lib/dice.h"

TestSuite(import_cut, .timeout = 60);

#define MOST 1024

/* What a server remembers of a batch: how many events were counted under the key of event i. */
static size_t counted[MOST];
static unsigned times[MOST];
static unsigned requests;

/* One import of the batch up to @count: offer, be told, offer less. */
static void import(size_t count, bool closed)
{
    for (size_t first = 0, n; first < count; first += n) {
        n = import_cut(first, count, closed);
        cr_assert(n > 0 && first + n <= count);
        for (requests++; counted[first] != 0 && counted[first] != n; requests++) {
            n = import_cut_smaller(n);
            cr_assert(n > 0, "what was counted from %zu is not found", first);
        }
        if (counted[first] == 0) {
            counted[first] = n;
            for (size_t i = first; i < first + n; i++) {
                times[i]++;
            }
        }
    }
}

Test(import_cut, a_number_in_binary)
{
    cr_expect_eq(import_cut(0, 700, false), 512);
    cr_expect_eq(import_cut(512, 700, false), 128);
    cr_expect_eq(import_cut(640, 700, false), 32);
    cr_expect_eq(import_cut(696, 700, false), 4);
    cr_expect_eq(import_cut(0, 700, true), 700);
    cr_expect_eq(import_cut(512, 700, true), 188);
    cr_expect_eq(import_cut(256, 700, true), 256);
    cr_expect_eq(import_cut(0, 1, false), 1);
    cr_expect_eq(import_cut_smaller(700), 512);
    cr_expect_eq(import_cut_smaller(512), 256);
    cr_expect_eq(import_cut_smaller(2), 1);
    cr_expect_eq(import_cut_smaller(1), 0);
}

/* A file that grows, and is imported after each time it has: however it grew, each event counts
 * once, and the requests are few. */
Test(import_cut, a_file_that_grows_counts_once)
{
    struct dice dice = dice_make(dice_seed());
    for (int round = 0; round < 2000; round++) {
        size_t full = 1 + (size_t)dice_below(&dice, MOST);
        size_t runs = 1 + (size_t)dice_below(&dice, 20);
        memset(counted, 0, sizeof(counted));
        memset(times, 0, sizeof(times));
        size_t count = 0;
        for (size_t i = 0; i < runs && count < full; i++) {
            count += (size_t)dice_below(&dice, (int64_t)(full - count + 1));
            import(count, count == full);
            import(count, count == full);
        }
        requests = 0;
        import(full, true);
        for (size_t i = 0; i < full; i++) {
            cr_assert_eq(times[i], 1, "event %zu counted %u times", i, times[i]);
        }
        cr_expect_leq(requests, 2 * (runs + 1) * 11);
    }
}

#include "storage/count/tally.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/index.h"
#include "tests/lib/hll_add.h"

/* A dense Redis string of a sketch. */
static void dense(const struct hll *hll, char *string)
{
    unsigned char *packed = (unsigned char *)string + 16;

    memset(string, 0, HLL_DENSE_SIZE);
    memcpy(string, "HYLL", 4);
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        size_t bit = i * 6;
        unsigned value = (unsigned)hll->registers[i] << (bit % 8);
        packed[bit / 8] |= (unsigned char)value;
        if (bit % 8 > 2) {
            packed[bit / 8 + 1] |= (unsigned char)(value >> 8);
        }
    }
}

/* The sketch of users [first, first + n). */
static void users(int first, int n, struct hll *ret)
{
    hll_clear(ret);
    for (int i = first; i < first + n; i++) {
        char name[16];
        int size = snprintf(name, sizeof(name), "user %d", i);
        hll_add(ret, name, (size_t)size);
    }
}

/* 150 hours, three groups of points: each has its own users, and some are in all of them. */
Test(tally, points_and_their_union)
{
    struct tally tally = {0};
    struct hll *hll = malloc(sizeof(*hll)), *all = malloc(sizeof(*all));
    char *string = malloc(HLL_DENSE_SIZE);
    bool nomem = false;
    struct count_point *points;
    size_t n;

    cr_assert(hll != NULL && all != NULL && string != NULL);
    hll_clear(all);
    cr_assert(tally_cut(&tally, zone_utc(), STEP_HOUR, (struct window){1800, 1800 + 150 * 3600}));
    cr_assert_eq(tally.n_points, 151, "cut at both ends");
    tally_clear(&tally);
    for (size_t i = 0; i < tally.n_points; i++) {
        for (int part = 0; part < 2 && i % 7 != 3; part++) { /* every seventh point is empty */
            users(part == 0 ? 0 : (int)i * 10, part == 0 ? 20 : 10, hll);
            dense(hll, string);
            cr_assert(tally_sketch(&tally, METRIC_UV, i, string, HLL_DENSE_SIZE, &nomem));
            cr_assert(hll_merge(all, string, HLL_DENSE_SIZE));
        }
        tally_sum(&tally, METRIC_PV, i, i);
        if (i % TALLY_GROUP == TALLY_GROUP - 1 || i + 1 == tally.n_points) {
            tally_end_group(&tally, i);
        }
    }
    cr_expect_eq(tally_total(&tally, METRIC_UV), hll_estimate(all));
    cr_expect_eq(tally_total(&tally, METRIC_PV), 150 * 151 / 2);
    points = tally_take_points(&tally, &n);
    cr_assert_eq(n, 151);
    for (size_t i = 0; i < n; i++) {
        uint64_t own = i % 7 == 3 ? 0 : i < 2 ? 20 : 30;
        uint64_t off = points[i].values[METRIC_UV] > own ? points[i].values[METRIC_UV] - own
                                                         : own - points[i].values[METRIC_UV];
        cr_expect_leq(
            off, own == 0 ? 0 : 1, "point %zu: %lu", i, (unsigned long)points[i].values[METRIC_UV]);
        cr_expect_eq(points[i].values[METRIC_PV], i);
    }
    cr_expect_eq(points[0].window.from_s, 1800);
    cr_expect_eq(points[0].window.to_s, 3600);
    cr_expect_eq(points[150].window.to_s, 1800 + 150 * 3600);
    free(points);
    tally_release(&tally);
    free(string);
    free(all);
    free(hll);
}

Test(tally, one_point)
{
    struct tally tally = {0};
    struct hll *hll = malloc(sizeof(*hll));
    char *string = malloc(HLL_DENSE_SIZE);
    bool nomem = false;

    cr_assert(hll != NULL && string != NULL);
    for (int round = 0; round < 2; round++) { /* nothing is left of the one before */
        cr_assert(tally_cut(&tally, NULL, STEP_NONE, (struct window){0, 60}));
        tally_clear(&tally);
        users(round * 1000, 100, hll);
        dense(hll, string);
        cr_assert(tally_sketch(&tally, METRIC_IPS, 0, string, HLL_DENSE_SIZE, &nomem));
        cr_assert_not(tally_sketch(&tally, METRIC_IPS, 0, "not a sketch", 12, &nomem));
        cr_assert_not(nomem);
        tally_end_group(&tally, 0);
        cr_expect_eq(tally_total(&tally, METRIC_IPS), hll_estimate(hll));
        cr_expect_eq(tally_total(&tally, METRIC_UV), 0);
    }
    tally_release(&tally);
    free(string);
    free(hll);
}

/* What is known of a point is its figure; what belongs to none is in the total; the last point may
 * be begun before the others. */
Test(tally, known_points_and_the_rest)
{
    struct tally tally = {0};
    struct hll *hll = malloc(sizeof(*hll)), *all = malloc(sizeof(*all));

    cr_assert(hll != NULL && all != NULL);
    hll_clear(all);
    cr_assert(tally_cut(&tally, zone_utc(), STEP_HOUR, (struct window){0, 130 * 3600}));
    tally_clear(&tally);
    users(1000, 300, hll);
    hll_unite(all, hll);
    cr_assert(tally_unite(&tally, METRIC_UV, 129, hll));
    for (size_t i = 0; i < 129; i++) {
        tally_known(&tally, METRIC_UV, i, i);
        tally_known(&tally, METRIC_PV, i, 2 * i);
    }
    users(0, 500, hll);
    hll_unite(all, hll);
    cr_assert(tally_unite(&tally, METRIC_UV, TALLY_TOTAL, hll));
    users(7, 30, hll);
    hll_unite(all, hll);
    cr_assert(tally_unite(&tally, METRIC_UV, 1, hll), "of the place that 129 would have");
    tally_end_group(&tally, 0);
    cr_assert_eq(tally.points[1].values[METRIC_UV], hll_estimate(hll));
    tally_end_group(&tally, 129);
    users(1000, 300, hll);
    cr_assert_eq(tally.points[129].values[METRIC_UV], hll_estimate(hll));
    cr_assert_eq(tally.points[128].values[METRIC_UV], 128);
    cr_assert_eq(tally.points[128].values[METRIC_PV], 256);
    cr_assert_eq(tally_total(&tally, METRIC_UV), hll_estimate(all));
    cr_assert_eq(tally_total(&tally, METRIC_PV), 128 * 129);
    free(hll);
    free(all);
    tally_release(&tally);
}

/* What caps put together belongs to no point; with nothing put together there is no bound. */
Test(tally, at_most)
{
    struct tally tally = {0};
    struct hll *own = malloc(sizeof(*own)), *other = malloc(sizeof(*other));
    cr_assert(own != NULL && other != NULL);
    cr_assert(tally_cut(&tally, zone_utc(), STEP_HOUR, (struct window){0, 3 * 3600}));
    tally_clear(&tally);
    users(0, 100, own);
    cr_assert(tally_unite(&tally, METRIC_UV, 1, own));
    tally_sum(&tally, METRIC_PV, 1, 120);
    tally_sum(&tally, METRIC_VISITS, 2, 7);
    tally_end_group(&tally, 2);
    cr_expect_eq(tally_at_most(&tally, METRIC_UV), 0);
    cr_expect_eq(tally_at_most(&tally, METRIC_PV), 0);
    users(50, 100, other); /* half of them are the page's visitors, too */
    cr_assert(tally_unite(&tally, METRIC_OTHER_UV, 1, other));
    tally_sum(&tally, METRIC_OTHER_PV, 0, 30);
    tally_sum(&tally, METRIC_OTHER_PV, 2, 3);
    tally_end_group(&tally, 2);
    cr_expect_eq(tally_at_most(&tally, METRIC_PV), 153);
    cr_expect_eq(tally_at_most(&tally, METRIC_VISITS), 0);
    cr_expect_eq(tally_at_most(&tally, METRIC_IPS), 0);
    users(0, 150, own);
    cr_expect_eq(tally_at_most(&tally, METRIC_UV), hll_estimate(own));
    cr_expect_eq(tally.points[1].values[METRIC_OTHER_UV], 0);
    tally_clear(&tally);
    cr_assert(tally_unite(&tally, METRIC_OTHER_UV, 1, other));
    cr_expect_eq(tally_at_most(&tally, METRIC_UV), hll_estimate(other), "of a page with no place");
    tally_release(&tally);
    free(own);
    free(other);
}

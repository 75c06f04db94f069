#include "storage/seen/filter.h"
#include "storage/seen/layout.h"
#include "storage/time/units.h"

#include <criterion/criterion.h>
#include <math.h>

TestSuite(seen, .timeout = 60);

static int64_t at(int64_t year, int month, int day)
{
    return civil_to_days((struct civil_date){year, month, day}) * DAY_S;
}

static const struct seen_config defaults = {
    .on = true, .capacity = 1000000, .error = 0.01, .keep_s = 92 * DAY_S};

/* ---- fingerprints ---- */

Test(seen, fingerprints_tell_users_and_pages_apart)
{
    struct visitor_id a = {.bytes = {1}};
    struct visitor_id b = {.bytes = {1, 1}};
    uint64_t f = seen_fingerprint(&a, 5);
    cr_expect_eq(f, seen_fingerprint(&a, 5));
    cr_expect_neq(f, seen_fingerprint(&a, 6));
    cr_expect_neq(f, seen_fingerprint(&b, 5));
    a.bytes[15] = 1;
    cr_expect_neq(f, seen_fingerprint(&a, 5));
    cr_expect_eq(seen_hash(f).a, f);
    cr_expect_neq(seen_hash(f).b, seen_hash(f + 1).b);
}

/* ---- months ---- */

static unsigned months_at(int64_t now_s, int64_t keep_s, struct bucket ret[SEEN_MONTHS_MAX])
{
    return seen_months(seen_newest_month(now_s), now_s, keep_s, ret);
}

Test(seen, months_that_are_kept)
{
    struct bucket months[SEEN_MONTHS_MAX];
    cr_assert_eq(months_at(at(2026, 11, 20), 92 * DAY_S, months), 4);
    cr_expect_eq(months[0].start_s, at(2026, 11, 1));
    cr_expect_eq(months[3].start_s, at(2026, 8, 1), "ended 81 days ago");
    cr_assert_eq(months_at(at(2026, 3, 1), DAY_S, months), 2);
    cr_expect_eq(months[1].start_s, at(2026, 2, 1));
    cr_assert_eq(months_at(at(2026, 3, 2), DAY_S, months), 1, "a day after its end: gone");
    cr_expect_eq(seen_expire_ms(months[0], DAY_S), at(2026, 4, 2) * 1000);
    cr_expect_leq(months_at(at(2026, 11, 20), SEEN_KEEP_MAX_S, months), SEEN_MONTHS_MAX);
    cr_expect_eq(months_at(0, SEEN_KEEP_MAX_S, months), 1, "nothing before 1970");
    cr_assert_eq(months_at(at(2026, 11, 30), DAY_S, months), 2, "the clock was set back, maybe");
    cr_expect_eq(months[0].start_s, at(2026, 12, 1));
    cr_expect_eq(months[1].start_s, at(2026, 11, 1));
}

/* And what was counted by a clock that was set back since. */
Test(seen, months_of_a_clock_that_was_ahead)
{
    struct bucket months[SEEN_MONTHS_MAX];
    int64_t now_s = at(2026, 3, 20);
    cr_assert_eq(seen_months(seen_newest_month(at(2026, 6, 2)), now_s, 10 * DAY_S, months), 4);
    cr_expect_eq(months[0].start_s, at(2026, 6, 1));
    cr_expect_eq(months[3].start_s, at(2026, 3, 1));
    cr_assert_eq(
        seen_months(seen_newest_month(at(2036, 1, 1)), now_s, DAY_S, months), SEEN_MONTHS_MAX);
    cr_assert_eq(seen_months(seen_newest_month(at(2026, 1, 1)), now_s, DAY_S, months), 0);
}

/* No day has more months than the error is shared by. */
Test(seen, the_error_is_shared_by_all_months)
{
    for (int64_t keep_s = SEEN_KEEP_MIN_S; keep_s <= SEEN_KEEP_MAX_S; keep_s += 7 * DAY_S) {
        struct seen_config config = defaults;
        config.keep_s = keep_s;
        double share = seen_params(&config, 16).error;
        for (int64_t now_s = at(2027, 1, 1); now_s < at(2029, 1, 1); now_s += DAY_S / 2) {
            struct bucket months[SEEN_MONTHS_MAX];
            unsigned n = months_at(now_s, keep_s, months);
            cr_assert_leq(n * share, config.error * 1.000001);
            cr_assert(
                n == SEEN_MONTHS_MAX ||
                bucket_at(zone_utc(), LEVEL_MONTH, months[n - 1].start_s - 1).end_s + keep_s <=
                    now_s);
        }
    }
}

Test(seen, the_capacity_is_shared_by_all_partitions)
{
    struct bloom_params params = seen_params(&defaults, 16);
    cr_expect_eq(params.capacity, 63750);
    cr_expect_eq(params.rules, BLOOM_OWN);
    cr_expect_float_eq(params.error, 0.002, 1e-9);
    struct bloom_layer layer = bloom_layer(&params, 0);
    cr_expect_eq(layer.segments, 1);
    cr_expect_lt(layer.bits, SEEN_SEGMENT_BITS);
    cr_expect_gt(bloom_layer(&params, 3).segments, 1);
    struct seen_config small = defaults;
    small.capacity = 1000;
    cr_expect_eq(seen_params(&small, 16).capacity, 1024, "63 would be full at once");
}

/* ---- the hash of a month ---- */

static struct reply text(const char *value)
{
    return (struct reply){.type = REPLY_TEXT, .text = slice_of(value)};
}

static bool read(const char *const *words, size_t n, struct seen_filter *ret)
{
    struct reply items[20];
    struct bloom_params params = seen_params(&defaults, 16);
    for (size_t i = 0; i < n; i++) {
        items[i] = text(words[i]);
    }
    struct reply pairs = {.type = REPLY_ARRAY, .items = items, .n = n};
    return seen_filter_read(&pairs, &params, ret);
}

Test(seen, filters_as_stored)
{
    struct seen_filter filter;
    static const char *const words[] = {
        "ver", "00ff", "capacity", "500", "error", "0.25", "n", "2", "0", "500", "1", "17"};
    cr_assert(read(words, 12, &filter));
    cr_expect(slice_equal((struct slice){filter.ver.text, filter.ver.n}, SLICE("00ff")));
    cr_expect_eq(filter.params.capacity, 500, "what it was made with, not today's options");
    cr_expect_eq(filter.params.error, 0.25);
    cr_expect_eq(filter.params.rules, BLOOM_REDISBLOOM, "made before there were others");
    cr_expect_eq(filter.n, 2);
    cr_expect_eq(filter.items[1], 17);
    double rate = seen_filter_false_positives(&filter);
    cr_expect(rate > 0.1 && rate < 0.25, "%g", rate);
    cr_expect_eq(filter.rules, SEEN_REDISBLOOM_LONG, "and so it is written back");
    cr_expect_eq(filter.params.segment_bits, 1 << 22);
    static const char *const longer[] = {"n", "1", "rules", "2"};
    cr_assert(read(longer, 4, &filter));
    cr_expect_eq(filter.rules, SEEN_OWN_LONG);
    cr_expect_eq(filter.params.rules, BLOOM_OWN);
    cr_expect_eq(filter.params.segment_bits, 1 << 22);
    static const char *const own[] = {"n", "1", "rules", "3"};
    cr_assert(read(own, 4, &filter));
    cr_expect_eq(filter.rules, SEEN_OWN);
    cr_expect_eq(filter.params.rules, BLOOM_OWN);
    cr_expect_eq(filter.params.segment_bits, SEEN_SEGMENT_BITS);
    cr_assert(read(words, 0, &filter));
    cr_expect_eq(filter.rules, SEEN_OWN);
    cr_expect_eq(filter.params.rules, BLOOM_OWN);
    cr_expect_eq(filter.params.segment_bits, SEEN_SEGMENT_BITS);
    cr_expect_eq(filter.ver.n, 0);
    cr_expect_eq(filter.n, 0);
    cr_expect_eq(filter.params.capacity, 63750);
    cr_expect_eq(seen_filter_false_positives(&filter), 0);
}

Test(seen, foreign_filters_are_refused)
{
    static const char *const cases[][2] = {
        {"ver", "000000000000000000000000000000000"}, /* 33 digits */
        {"capacity", "0"}, {"capacity", "x"}, {"capacity", "-5"}, {"capacity", "1073741825"},
        {"error", "0"}, {"error", "0.3"}, {"error", "nan"}, {"n", "33"}, {"n", "-1"}, {"32", "1"},
        {"0", "-1"}, {"0", "x"}, {"what", "1"}, {"rules", "0"}, {"rules", "4"}, {"rules", "x"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct seen_filter filter;
        cr_expect_not(read(cases[i], 2, &filter), "%s %s", cases[i][0], cases[i][1]);
    }
    struct seen_filter filter;
    cr_expect_not(read(cases[0], 1, &filter));
}

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/job/limit.h"
#include "storage/schema/key.h"

static struct limit funnel(int64_t count, int64_t period_us, int64_t burst)
{
    return (struct limit){LIMIT_FUNNEL, count, period_us, burst};
}

Test(limit, units_are_over_their_greatest_divisor)
{
    static const struct {
        int64_t count, period_us, cost, rate;
    } rows[] = {{1, 1000000, 1000000, 1}, {700000, 1000000, 10, 7}, {5, 60000000, 12000000, 1},
        {7, 1000000, 1000000, 7}, {1000000000, 1000, 1, 1000000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct limit limit = funnel(rows[i].count, rows[i].period_us, 0);
        int64_t cost, rate;
        limit_units(&limit, &cost, &rate);
        cr_expect(cost == rows[i].cost && rate == rows[i].rate, "row %zu", i);
    }
}

Test(limit, what_is_wrong)
{
    static const struct {
        struct limit limit;
        int part; /* -1: it is right */
    } rows[] = {
        {{LIMIT_FUNNEL, 1, 1000, 0}, -1},
        {{LIMIT_FUNNEL, LIMIT_COUNT_MAX, LIMIT_PERIOD_MAX_US, LIMIT_BURST_MAX}, -1},
        {{LIMIT_FUNNEL, 1, LIMIT_PERIOD_MAX_US, 70}, -1},
        {{LIMIT_FUNNEL, 1, LIMIT_PERIOD_MAX_US, 71}, LIMIT_PART_BURST},
        {{LIMIT_FUNNEL, 0, 1000, 0}, LIMIT_PART_COUNT},
        {{LIMIT_FUNNEL, LIMIT_COUNT_MAX + 1, 1000, 0}, LIMIT_PART_COUNT},
        {{LIMIT_FUNNEL, 1, 999, 0}, LIMIT_PART_PERIOD},
        {{LIMIT_FUNNEL, 1, LIMIT_PERIOD_MAX_US + 1, 0}, LIMIT_PART_PERIOD},
        {{LIMIT_FUNNEL, 1, INT64_MAX, 0}, LIMIT_PART_PERIOD},
        {{LIMIT_FUNNEL, 1, 1000, -1}, LIMIT_PART_BURST},
        {{LIMIT_FUNNEL, 1, 1000, INT64_MAX}, LIMIT_PART_BURST},
        {{LIMIT_SLIDING, LIMIT_SLIDING_MAX, LIMIT_PERIOD_MAX_US, 0}, -1},
        {{LIMIT_SLIDING, LIMIT_SLIDING_MAX + 1, 1000, 0}, LIMIT_PART_COUNT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum limit_part part;
        const char *fault = limit_check(&rows[i].limit, &part);
        cr_expect_eq(fault == NULL ? -1 : (int)part, rows[i].part, "row %zu: %s", i, fault);
    }
}

Test(limit, windows_and_seconds_are_rounded_up)
{
    struct limit limit = funnel(1000, 1000000, 2000);
    cr_expect_eq(limit_window_us(&limit), 2001000);
    limit = funnel(7, 1000000, 0);
    cr_expect_eq(limit_window_us(&limit), 142858);
    cr_expect(limit_seconds(0) == 0 && limit_seconds(1) == 1 && limit_seconds(1000000) == 1 &&
              limit_seconds(1000001) == 2 && limit_seconds(-1) == -1);
}

Test(limit, keys)
{
    struct partitions partitions;
    struct key key;
    static const struct {
        enum key_limit_kind kind;
        size_t nth;
        const char *policy, *who, *key;
    } rows[] = {
        {KEY_LIMIT_SLIDING, 0, "p", "a:{b}", "t:{0}:rl:sliding:p:a:{b}"},
        {KEY_LIMIT_SLIDING, 1, "p", "a:{b}", "t:{0}:rl:sliding2:p:a:{b}"},
        {KEY_LIMIT_FUNNEL, 0, "", "p:a", "t:{0}:rl:funnel::p:a"},
        {KEY_LIMIT_FUNNEL, 7, "", "p:a", "t:{0}:rl:funnel8::p:a"},
        {KEY_LIMIT_PENALTY, 0, "p", "a", "t:{0}:rl:penalty:p:a"},
        {KEY_LIMIT_GUARD, 0, "ip", "p:a", "t:{0}:rl:ingest:ip:p:a"},
    };
    partitions_make(1, &partitions);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        key_limit(&key, &partitions, rows[i].kind, rows[i].nth, slice_of(rows[i].policy),
            slice_of(rows[i].who));
        cr_expect(slice_equal((struct slice){key.p, key.n}, slice_of(rows[i].key)), "%.*s",
            (int)key.n, key.p);
    }
}

Test(limit, all_keys_of_a_decision_lie_together)
{
    struct partitions partitions;
    struct key key;
    char tags[2][16];
    partitions_make(64, &partitions);
    for (int i = 0; i < 200; i++) {
        char who[16];
        int n = snprintf(who, sizeof(who), "user%d", i);
        for (unsigned kind = KEY_LIMIT_FUNNEL; kind <= KEY_LIMIT_PENALTY; kind++) {
            key_limit(&key, &partitions, (enum key_limit_kind)kind, kind, SLICE("p"),
                (struct slice){who, (size_t)n});
            size_t tag_n = (size_t)((char *)memchr(key.p, '}', key.n) - key.p);
            snprintf(tags[kind > 0], sizeof(tags[0]), "%.*s", (int)tag_n, key.p);
            cr_expect_str_eq(tags[kind > 0], tags[0], "%.*s", (int)key.n, key.p);
        }
    }
}

Test(limit, penalties)
{
    static const struct {
        struct limit_penalty penalty;
        bool right;
    } rows[] = {
        {{1, 1000, 1000}, true},
        {{LIMIT_REFUSALS_MAX, LIMIT_PERIOD_MAX_US, LIMIT_PERIOD_MAX_US}, true},
        {{0, 1000, 1000}, false},
        {{LIMIT_REFUSALS_MAX + 1, 1000, 1000}, false},
        {{1, 999, 1000}, false},
        {{1, 1000, 999}, false},
        {{1, LIMIT_PERIOD_MAX_US + 1, 1000}, false},
        {{1, 1000, LIMIT_PERIOD_MAX_US + 1}, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_eq(limit_penalty_check(&rows[i].penalty) == NULL, rows[i].right, "row %zu", i);
    }
}

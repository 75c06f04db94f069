#include <criterion/criterion.h>

#include "service/options/limit_option.h"

Test(limit_option, policies)
{
    static const struct {
        const char *text;
        struct limit limit;
    } rows[] = {
        {"funnel 5/60s burst 4", {LIMIT_FUNNEL, 5, 60000000, 4}},
        {"funnel 1/500ms", {LIMIT_FUNNEL, 1, 500000, 0}},
        {"  sliding\t100/10s ", {LIMIT_SLIDING, 100, 10000000, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct limit_policy policy;
        const struct limit *limit = &policy.set.limits[0];
        cr_expect_null(limit_option_policy(rows[i].text, &policy), "%s", rows[i].text);
        cr_expect(policy.set.n == 1 && policy.set.penalty.refusals == 0 &&
                      limit->algorithm == rows[i].limit.algorithm &&
                      limit->count == rows[i].limit.count &&
                      limit->period_us == rows[i].limit.period_us &&
                      limit->burst == rows[i].limit.burst,
            "%s", rows[i].text);
    }
}

Test(limit_option, several_limits_and_a_penalty)
{
    struct limit_policy policy;
    const struct limit_set *set = &policy.set;
    cr_assert_null(limit_option_policy(
        " funnel\t5/60s  burst 4+sliding 100/1d +penalty 15m  after 3/1h ", &policy));
    cr_assert(set->n == 2 && set->limits[0].burst == 4 &&
              set->limits[0].algorithm == LIMIT_FUNNEL && set->limits[1].count == 100 &&
              set->limits[1].algorithm == LIMIT_SLIDING);
    cr_expect(set->penalty.refusals == 3 && set->penalty.within_us == INT64_C(3600000000) &&
              set->penalty.lasts_us == INT64_C(900000000));
    cr_expect_str_eq(policy.limit_text[0], "funnel 5/60s burst 4");
    cr_expect_str_eq(policy.limit_text[1], "sliding 100/1d");
    cr_expect_str_eq(policy.penalty_text, "penalty 15m after 3/1h");
    cr_assert_null(
        limit_option_policy("penalty 1s after 1/1s + funnel 1/1s + funnel 1/1s + funnel 1/1s + "
                            "sliding 1/1s + funnel 1/1s + funnel 1/1s + funnel 1/1s + funnel 2/1s",
            &policy));
    cr_expect(set->n == LIMIT_SET_MAX && set->limits[7].count == 2);
}

Test(limit_option, what_is_no_policy)
{
    static const char *const texts[] = {"", "funnel", "funnel 5", "funnel 5/60", "funnel 5/",
        "funnel /60s", "funnel 0/1s", "funnel 5/0s", "funnel 5/60s burst", "funnel 5/60s burst x",
        "funnel 5/60s burst -1", "funnel 5/60s burst 1 2", "funnel 5/60s 4",
        "sliding 5/60s burst 4", "sliding 10001/1s", "leaky 5/60s",
        "funnel 5/60s burst 99999999999", "funnel 1/366d burst 1000000000", "funnel 1/99999999999d",
        "funnel 111111111111111111111111111111111111111111111111111111111111/1s", "+",
        "funnel 5/60s +", "+ funnel 5/60s", "funnel 5/60s ++ sliding 5/60s",
        "funnel 5/60s sliding 5/60s", "penalty 15m after 3/1h", "funnel 5/60s + penalty 15m",
        "funnel 5/60s + penalty 15m after 3", "funnel 5/60s + penalty 15m after 0/1h",
        "funnel 5/60s + penalty 15m after 101/1h", "funnel 5/60s + penalty 15m before 3/1h",
        "funnel 5/60s + penalty 0s after 3/1h", "funnel 5/60s + penalty 367d after 3/1h",
        "funnel 5/60s + penalty 99999999999d after 3/1h", "funnel 5/60s + sliding 10001/1s",
        "funnel 5/60s + penalty 15m after 3/1h burst 4",
        "funnel 5/60s + penalty 1m after 3/1h + penalty 1h after 3/1d",
        "sliding 1/1s+sliding 1/1s+sliding 1/1s+sliding 1/1s+sliding 1/1s+sliding 1/1s+sliding "
        "1/1s+sliding 1/1s+sliding 1/1s"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct limit_policy policy;
        cr_expect_not_null(limit_option_policy(texts[i], &policy), "%s", texts[i]);
    }
}

Test(limit_option, rates)
{
    struct limit limit;
    cr_expect_null(limit_option_rate("1000/1s", &limit));
    cr_expect(limit.count == 1000 && limit.period_us == 1000000 && limit.burst == 0);
    cr_expect_not_null(limit_option_rate("1000", &limit));
    cr_expect_not_null(limit_option_rate("1000/1s burst 5", &limit));
    cr_expect_not_null(limit_option_rate("0/1s", &limit));
    cr_expect_not_null(limit_option_rate("1/0s", &limit));
}

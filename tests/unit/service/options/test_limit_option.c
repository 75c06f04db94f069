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
        struct limit limit;
        cr_expect_null(limit_option_policy(rows[i].text, &limit), "%s", rows[i].text);
        cr_expect(
            limit.algorithm == rows[i].limit.algorithm && limit.count == rows[i].limit.count &&
                limit.period_us == rows[i].limit.period_us && limit.burst == rows[i].limit.burst,
            "%s", rows[i].text);
    }
}

Test(limit_option, what_is_no_policy)
{
    static const char *const texts[] = {"", "funnel", "funnel 5", "funnel 5/60", "funnel 5/",
        "funnel /60s", "funnel 0/1s", "funnel 5/0s", "funnel 5/60s burst", "funnel 5/60s burst x",
        "funnel 5/60s burst -1", "funnel 5/60s burst 1 2", "funnel 5/60s 4",
        "sliding 5/60s burst 4", "sliding 10001/1s", "leaky 5/60s",
        "funnel 5/60s burst 99999999999", "funnel 1/366d burst 1000000000", "funnel 1/99999999999d",
        "funnel 111111111111111111111111111111111111111111111111111111111111/1s"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct limit limit;
        cr_expect_not_null(limit_option_policy(texts[i], &limit), "%s", texts[i]);
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

#include "storage/time/zone_rule.h"

#include <criterion/criterion.h>

#include "tests/lib/utc.h"

static void check(const char *text, int64_t year, const char *first, int64_t first_s,
    const char *second, int64_t second_s)
{
    struct zone_rule rule;
    struct zone_change two[2];

    cr_assert(zone_rule_parse(slice_of(text), &rule), "%s", text);
    cr_assert(rule.has_saving);
    zone_rule_changes(&rule, year, two);
    cr_expect_eq(two[0].at_s, utc(first), "%s: %lld", text, (long long)two[0].at_s);
    cr_expect_eq(two[0].offset_s, first_s, "%s", text);
    cr_expect_eq(two[1].at_s, utc(second), "%s: %lld", text, (long long)two[1].at_s);
    cr_expect_eq(two[1].offset_s, second_s, "%s", text);
}

Test(zone_rule, changes_of_a_year)
{
    check("CET-1CEST,M3.5.0,M10.5.0/3", 2026, "2026-03-29 01:00", 7200, "2026-10-25 01:00", 3600);
    check("EST5EDT,M3.2.0,M11.1.0", 2026, "2026-03-08 07:00", -14400, "2026-11-01 06:00", -18000);
    check("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2026, "2026-04-04 15:00", 37800,
        "2026-10-03 15:30", 39600);
    check("IST-1GMT0,M10.5.0,M3.5.0/1", 2026, "2026-03-29 01:00", 3600, "2026-10-25 01:00", 0);
    check("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, "2026-03-29 01:00", -3600, "2026-10-25 01:00",
        -7200);
    check("AAA0BBB,J60/0,J61/0:30:00", 2024, "2024-03-01 00:00", 3600, "2024-03-01 23:30", 0);
    check("AAA0BBB,59/0,60/0", 2024, "2024-02-29 00:00", 3600, "2024-02-29 23:00", 0);
    check("AAA0BBB-2,M2.5.4/24,M12.5.6/167", 2024, "2024-03-01 00:00", 7200, "2025-01-03 21:00", 0);
}

Test(zone_rule, without_saving_time)
{
    struct zone_rule rule;

    cr_assert(zone_rule_parse(SLICE("<+0545>-5:45"), &rule));
    cr_expect_not(rule.has_saving);
    cr_expect_eq(rule.standard_s, 20700);
    cr_assert(zone_rule_parse(SLICE("UTC0"), &rule));
    cr_expect_eq(rule.standard_s, 0);
}

Test(zone_rule, what_is_none)
{
    static const char *const texts[] = {"", "CE-1", "CET", "CET-", "CET-25", "CET-1:60",
        "CET-1:00:60", "<CET-1", "<C>-1", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,",
        "CET-1CEST,M13.1.0,M10.5.0", "CET-1CEST,M0.1.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.0.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J3",
        "CET-1CEST,J366,J3", "CET-1CEST,366,3", "CET-1CEST,M3.5.0/168,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/3x", "CET-1CEST,M3.5.0,M10.5.0,", "CET-1 CEST,M3.5.0,M10.5.0",
        "CET-1CEST,M3.5.0000,M10.5.0", ":Europe/Berlin", "CET--1", "C\nT-1"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct zone_rule rule;

        cr_expect_not(zone_rule_parse(slice_of(texts[i]), &rule), "\"%s\"", texts[i]);
    }
}

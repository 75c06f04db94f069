#include "storage/time/write_plan.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <time.h>

#include "storage/time/units.h"
#include "tests/lib/utc.h"

TestSuite(plan_write, .timeout = 60);

static const struct retention keep_some = {
    .keep_s = {2 * DAY_S, 62 * DAY_S, 1100 * DAY_S, KEEP_FOREVER}};

/* Everything before the current hour, day and month is closed; now is 2026-11-20 15:17. */
static struct rollup_state usual(void)
{
    return rollup_state_initial(utc("2026-11-20 15:17"));
}

static struct write_plan plan_at(
    const struct rollup_state *state, const struct retention *retention, int64_t at_s)
{
    struct write_plan plan;
    write_plan_init(&plan, retention, state);
    write_plan_at(&plan, at_s);
    return plan;
}

/* ---- a few by hand ---- */

static void check_target(const struct write_target *target, enum level level, const char *start,
    int64_t expire_s, const char *parent)
{
    cr_expect_eq(target->bucket.level, level, "%s", start);
    cr_expect_eq(target->bucket.start_s, utc(start), "%s", start);
    cr_expect_eq(target->expire_ms, expire_s * 1000, "%s", start);
    cr_expect_eq(target->announce, parent != NULL, "%s", start);
    if (parent != NULL) {
        cr_expect_eq(target->parent.start_s, utc(parent), "%s", start);
    }
}

Test(plan_write, an_event_of_now)
{
    struct rollup_state state = usual();
    struct write_plan plan = plan_at(&state, &keep_some, utc("2026-11-20 15:17") + 14);
    cr_assert_eq(plan.n, 1u);
    check_target(&plan.targets[0], LEVEL_MINUTE, "2026-11-20 15:17", 0, "2026-11-20 15:00");
    cr_expect_eq(plan.targets[0].parent.level, LEVEL_HOUR);
}

Test(plan_write, an_event_of_the_hour_before)
{
    struct rollup_state state = usual();
    struct write_plan plan = plan_at(&state, &keep_some, utc("2026-11-20 14:59") + 59);
    cr_assert_eq(plan.n, 2u);
    check_target(&plan.targets[0], LEVEL_MINUTE, "2026-11-20 14:59",
        utc("2026-11-20 15:00") + 2 * DAY_S, NULL);
    check_target(&plan.targets[1], LEVEL_HOUR, "2026-11-20 14:00", 0, "2026-11-20 00:00");
}

/* Marked, not yet complete: the hour gets it too, and the minute no expiry. */
Test(plan_write, an_event_of_a_closing_hour)
{
    struct rollup_state state = usual();
    state.readers_s[LEVEL_HOUR] -= HOUR_S;
    struct write_plan plan = plan_at(&state, &keep_some, utc("2026-11-20 14:59"));
    cr_assert_eq(plan.n, 2u);
    check_target(&plan.targets[0], LEVEL_MINUTE, "2026-11-20 14:59", 0, "2026-11-20 14:00");
    check_target(&plan.targets[1], LEVEL_HOUR, "2026-11-20 14:00", 0, "2026-11-20 00:00");
}

Test(plan_write, an_event_of_months_ago)
{
    struct rollup_state state = usual();
    struct write_plan plan = plan_at(&state, &keep_some, utc("2026-02-28 23:59"));
    cr_assert_eq(plan.n, 4u);
    check_target(&plan.targets[0], LEVEL_MINUTE, "2026-02-28 23:59",
        utc("2026-03-01 00:00") + 2 * DAY_S, NULL);
    check_target(&plan.targets[1], LEVEL_HOUR, "2026-02-28 23:00",
        utc("2026-03-01 00:00") + 62 * DAY_S, NULL);
    check_target(&plan.targets[2], LEVEL_DAY, "2026-02-28 00:00",
        utc("2026-03-01 00:00") + 1100 * DAY_S, NULL);
    check_target(&plan.targets[3], LEVEL_MONTH, "2026-02-01 00:00", 0, NULL); /* forever */
}

Test(plan_write, a_closing_month_is_announced_for_itself)
{
    struct rollup_state state = usual();
    state.readers_s[LEVEL_MONTH] = utc("2026-10-01 00:00");
    struct write_plan plan = plan_at(&state, &keep_some, utc("2026-10-31 23:59"));
    cr_assert_eq(plan.n, 4u);
    check_target(&plan.targets[2], LEVEL_DAY, "2026-10-31 00:00", 0, "2026-10-01 00:00");
    check_target(&plan.targets[3], LEVEL_MONTH, "2026-10-01 00:00", 0, "2026-10-01 00:00");
    cr_expect_eq(plan.targets[3].parent.level, LEVEL_MONTH);
}

Test(plan_write, expiries)
{
    static const struct {
        int64_t end_s, keep_s, ms;
    } cases[] = {
        {1000, 60, 1060000}, {1000, 0, 1000000}, {1000, KEEP_FOREVER, 0}, {0, KEEP_FOREVER - 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(expiry_ms(cases[i].end_s, cases[i].keep_s), cases[i].ms, "case %zu", i);
    }
}

/* What expired long ago is sent with its time all the same: Redis's clock decides. */
Test(plan_write, an_expiry_may_lie_in_the_past)
{
    struct rollup_state state = usual();
    struct write_plan plan = plan_at(&state, &keep_some, utc("2001-01-01 00:00"));
    cr_expect_eq(plan.targets[0].expire_ms, (utc("2001-01-01 00:01") + 2 * DAY_S) * 1000);
}

Test(plan_write, what_has_its_expiry_keeps_it)
{
    struct rollup_state state = usual();
    struct retention r = keep_some;
    r.before_s[LEVEL_MINUTE] = DAY_S;
    r.until_s[LEVEL_MINUTE] = utc("2026-11-20 13:00");
    cr_expect_eq(plan_at(&state, &r, utc("2026-11-20 12:59")).targets[0].expire_ms,
        (utc("2026-11-20 13:00") + DAY_S) * 1000);
    cr_expect_eq(plan_at(&state, &r, utc("2026-11-20 13:00")).targets[0].expire_ms,
        (utc("2026-11-20 13:01") + 2 * DAY_S) * 1000);
}

/* ---- every stage against the rule of the header ---- */

/* The bucket by libc's calendar. */
static struct bucket naive_bucket(enum level level, int64_t at_s)
{
    time_t time = (time_t)at_s;
    struct tm tm;
    gmtime_r(&time, &tm);
    tm.tm_sec = 0;
    tm.tm_min = level >= LEVEL_HOUR ? 0 : tm.tm_min;
    tm.tm_hour = level >= LEVEL_DAY ? 0 : tm.tm_hour;
    tm.tm_mday = level >= LEVEL_MONTH ? 1 : tm.tm_mday;
    struct bucket bucket = {.level = level, .start_s = timegm(&tm)};
    tm.tm_min += level == LEVEL_MINUTE ? 1 : 0;
    tm.tm_hour += level == LEVEL_HOUR ? 1 : 0;
    tm.tm_mday += level == LEVEL_DAY ? 1 : 0;
    tm.tm_mon += level == LEVEL_MONTH ? 1 : 0;
    bucket.end_s = timegm(&tm);
    return bucket;
}

static bool right(const struct rollup_state *state, const struct retention *retention, int64_t at_s,
    const struct write_plan *plan)
{
    unsigned n = 0;
    for (int level = LEVEL_MINUTE; level < LEVELS; level++) {
        struct bucket bucket = naive_bucket((enum level)level, at_s);
        struct bucket parent =
            naive_bucket((enum level)(level == LEVEL_MONTH ? level : level + 1), at_s);
        const struct write_target *t = &plan->targets[n];
        if (level != LEVEL_MINUTE && bucket.end_s > state->writers_s[level]) {
            continue;
        }
        bool complete = parent.end_s <= state->readers_s[parent.level];
        int64_t keep_s = retention->keep_s[level];
        int64_t expire_ms = complete && keep_s != KEEP_FOREVER ? (bucket.end_s + keep_s) * 1000 : 0;
        n++;
        if (n > plan->n || t->bucket.level != bucket.level || t->bucket.start_s != bucket.start_s ||
            t->bucket.end_s != bucket.end_s || t->expire_ms != expire_ms ||
            t->announce == complete || t->parent.level != parent.level ||
            t->parent.start_s != parent.start_s || t->parent.end_s != parent.end_s) {
            return false;
        }
    }
    return n == plan->n;
}

/* All stamps of a level that matter here; each may be closing besides. */
static size_t stages(const char *const *times, size_t n, enum level level, int64_t (*ret)[2])
{
    for (size_t i = 0; i < n; i++) {
        ret[2 * i][0] = ret[2 * i][1] = ret[2 * i + 1][1] = utc(times[i]);
        ret[2 * i + 1][0] = naive_bucket(level, utc(times[i])).end_s;
    }
    return 2 * n;
}

Test(plan_write, every_stage)
{
    static const char *const months[] = {
        "2026-10-01 00:00", "2026-11-01 00:00", "2026-12-01 00:00"};
    static const char *const days[] = {"2026-10-31 00:00", "2026-11-01 00:00", "2026-11-02 00:00",
        "2026-11-30 00:00", "2026-12-01 00:00"};
    static const char *const hours[] = {"2026-10-31 23:00", "2026-11-01 00:00", "2026-11-01 01:00",
        "2026-11-02 00:00", "2026-11-30 22:00", "2026-12-01 00:00", "2026-12-01 01:00"};
    static const struct retention retentions[] = {
        {.keep_s = {2 * DAY_S, 62 * DAY_S, 1100 * DAY_S, 4000 * DAY_S}},
        {.keep_s = {KEEP_FOREVER, 0, KEEP_FOREVER, KEEP_FOREVER}},
    };
    int64_t m[6][2];
    int64_t d[10][2];
    int64_t h[14][2];
    unsigned n_states = 0;
    unsigned per_n[LEVELS + 1] = {0};
    size_t n_m = stages(months, 3, LEVEL_MONTH, m);
    size_t n_d = stages(days, 5, LEVEL_DAY, d);
    size_t n_h = stages(hours, 7, LEVEL_HOUR, h);
    for (size_t i = 0; i < n_m * n_d * n_h; i++) {
        const int64_t *month = m[i % n_m];
        const int64_t *day = d[i / n_m % n_d];
        const int64_t *hour = h[i / n_m / n_d];
        struct rollup_state state = {
            {0, hour[0], day[0], month[0]}, {0, hour[1], day[1], month[1]}};
        if (month[0] > day[1] || day[0] > hour[1]) {
            continue; /* no state: a level closes over an open one below */
        }
        n_states++;
        for (size_t r = 0; r < 2; r++) {
            struct write_plan plan; /* one for all: what it remembers must not show */
            write_plan_init(&plan, &retentions[r], &state);
            for (size_t t = 0; t < 7 * 6; t++) {
                static const int64_t around_s[] = {-HOUR_S - 1, -1, 0, 59, HOUR_S, DAY_S};
                int64_t at_s = utc(hours[t / 6]) + around_s[t % 6];
                write_plan_at(&plan, at_s);
                cr_assert(right(&state, &retentions[r], at_s, &plan),
                    "state %zu, retention %zu, %s %+lld", i, r, hours[t / 6],
                    (long long)around_s[t % 6]);
                per_n[plan.n]++;
                write_plan_at(&plan, at_s - MINUTE_S);
                cr_assert(right(&state, &retentions[r], at_s - MINUTE_S, &plan), "a minute back");
                write_plan_at(&plan, at_s);
                write_plan_at(&plan, at_s - at_s % MINUTE_S);
                cr_assert(right(&state, &retentions[r], at_s, &plan), "again");
            }
        }
    }
    cr_expect_gt(n_states, 100u);
    for (int n = 1; n <= LEVELS; n++) {
        cr_expect_gt(per_n[n], 100u, "%d targets: %u", n, per_n[n]);
    }
}

/* Neighbouring events of one minute may be of sites with different zones. */
Test(plan_write, the_same_minute_in_another_zone)
{
    const char *fault = NULL;
    struct zone *zone = zone_make("Asia/Kathmandu", 20700, NULL, 0, false, 0, &fault);
    cr_assert_not_null(zone, "%s", fault);
    struct rollup_state state = usual();
    struct write_plan plan = plan_at(&state, &keep_some, utc("2026-11-20 13:20"));
    cr_assert_eq(plan.n, 2u);
    check_target(&plan.targets[1], LEVEL_HOUR, "2026-11-20 13:00", 0, "2026-11-20 00:00");
    write_plan_in(&plan, zone);
    write_plan_at(&plan, utc("2026-11-20 13:20"));
    cr_assert_eq(plan.n, 2u);
    cr_expect_eq(plan.targets[1].bucket.start_s, utc("2026-11-20 13:15"), "an offset of 5:45");
    write_plan_in(&plan, zone_utc());
    write_plan_at(&plan, utc("2026-11-20 13:20"));
    check_target(&plan.targets[1], LEVEL_HOUR, "2026-11-20 13:00", 0, "2026-11-20 00:00");
    zone_free(zone);
}

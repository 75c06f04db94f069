#include "storage/core/period_secrets.h"

#include <criterion/criterion.h>
#include <string.h>

#include "storage/time/units.h"

TestSuite(period_secrets, .timeout = 60);

#define NOON_S (INT64_C(20000) * DAY_S + DAY_S / 2)
#define NOW_MS (NOON_S * 1000)

static struct event event_of(int64_t at_s, bool has_address)
{
    return (struct event){.at_s = at_s,
        .site = SLICE("shop"),
        .page = SLICE("/"),
        .address = {.len = has_address ? 4 : 0, .bytes = {192, 0, 2, 1}}};
}

static struct secret secret_of(uint8_t byte)
{
    struct secret secret;
    memset(secret.bytes, byte, sizeof(secret.bytes));
    return secret;
}

static void learn(struct period_secrets *secrets, int64_t start_s, uint8_t byte, int64_t gone_ms)
{
    struct secret secret = secret_of(byte);
    cr_assert(period_secrets_learn(secrets, start_s, &secret, gone_ms));
}

static void expect_found(struct period_secrets *secrets, int64_t now_ms, const struct event *events,
    size_t n, size_t known, size_t missing, int line)
{
    struct period_list list;
    cr_assert(period_secrets_find(secrets, ROTATE_DAY, now_ms, events, n, &list));
    cr_expect_eq(list.n_known, known, "line %d: %zu known", line, list.n_known);
    cr_expect_eq(list.n_missing, missing, "line %d: %zu missing", line, list.n_missing);
    for (size_t i = 1; i < list.n_missing; i++) {
        cr_expect_lt(list.missing[i - 1], list.missing[i]);
    }
    period_list_release(&list);
}
#define FOUND(now_ms, events, n, known, missing)                                                   \
    expect_found(&secrets, now_ms, events, n, known, missing, __LINE__)

Test(period_secrets, each_period_of_an_address_once)
{
    struct period_secrets secrets = {0};
    struct event events[] = {event_of(NOON_S, true), event_of(NOON_S - DAY_S, false),
        event_of(NOON_S + 2 * DAY_S, true), event_of(NOON_S + 60, true),
        event_of(NOON_S - 3 * DAY_S, true)};
    struct period_list none;
    period_secrets_init(&secrets);
    FOUND(NOW_MS, events, 5, 0, 3);
    FOUND(NOW_MS, events + 1, 1, 0, 0);
    cr_assert(period_secrets_find(&secrets, ROTATE_NEVER, NOW_MS, events, 5, &none));
    cr_expect(none.n_known == 0 && none.n_missing == 0);
    period_list_release(&none);
    learn(&secrets, NOON_S - DAY_S / 2, 1, NOW_MS + 1000);
    FOUND(NOW_MS, events, 5, 1, 2);
    learn(&secrets, NOON_S - 3 * DAY_S - DAY_S / 2, 2, NOW_MS + 1000);
    FOUND(NOW_MS, events, 5, 2, 1);
    period_secrets_release(&secrets);
}

Test(period_secrets, is_gone_at_its_time)
{
    struct period_secrets secrets = {0};
    struct event events[] = {event_of(NOON_S, true), event_of(NOON_S + DAY_S, true)};
    struct secret proposed;
    struct secret first = secret_of(1);
    period_secrets_init(&secrets);
    learn(&secrets, NOON_S - DAY_S / 2, 1, NOW_MS + 1000);
    learn(&secrets, NOON_S + DAY_S / 2, 2, NOW_MS + 2000);
    FOUND(NOW_MS + 999, events, 2, 2, 0);
    FOUND(NOW_MS + 1000, events, 2, 1, 1);
    period_secrets_propose(&secrets, NOON_S - DAY_S / 2, &proposed);
    cr_expect_neq(memcmp(&proposed, &first, sizeof(first)), 0, "nothing of it is left");
    period_secrets_sweep(&secrets, NOW_MS + 2000);
    cr_expect_eq(secrets.n, 0);
    period_secrets_release(&secrets);
}

Test(period_secrets, in_doubt_none_is_used_and_the_same_is_proposed)
{
    struct period_secrets secrets = {0};
    struct event event = event_of(NOON_S, true);
    struct secret proposed;
    struct secret first = secret_of(1);
    period_secrets_init(&secrets);
    learn(&secrets, NOON_S - DAY_S / 2, 1, NOW_MS + 1000);
    period_secrets_doubt(&secrets);
    FOUND(NOW_MS, &event, 1, 0, 1);
    period_secrets_propose(&secrets, NOON_S - DAY_S / 2, &proposed);
    cr_expect_arr_eq(proposed.bytes, first.bytes, sizeof(first.bytes));
    learn(&secrets, NOON_S - DAY_S / 2, 9, NOW_MS + 1000); /* Redis has another one */
    period_secrets_propose(&secrets, NOON_S - DAY_S / 2, &proposed);
    cr_expect_eq(proposed.bytes[0], 9);
    FOUND(NOW_MS, &event, 1, 1, 0);
    period_secrets_release(&secrets);
}

Test(period_secrets, many)
{
    struct period_secrets secrets = {0};
    struct event events[300];
    period_secrets_init(&secrets);
    for (int i = 0; i < 300; i++) { /* in no order: 7 and 300 have no common divisor */
        int64_t at_s = NOON_S + (i * 7 % 300) * DAY_S;
        events[i] = event_of(at_s, true);
        learn(&secrets, at_s - DAY_S / 2, (uint8_t)i, NOW_MS + 1000 + i);
    }
    FOUND(NOW_MS, events, 300, 300, 0);
    FOUND(NOW_MS + 1099, events, 300, 200, 100);
    period_secrets_release(&secrets);
}

Test(period_secrets, the_next_one_an_hour_ahead)
{
    struct period_secrets secrets = {0};
    int64_t midnight_ms = (NOON_S + DAY_S / 2) * 1000;
    int64_t start_s = 0;
    period_secrets_init(&secrets);
    cr_expect_not(period_secrets_ahead(&secrets, ROTATE_NEVER, midnight_ms - 1000, &start_s));
    cr_expect_not(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 3600001, &start_s));
    cr_expect(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 3600000, &start_s));
    cr_expect_eq(start_s * 1000, midnight_ms);
    cr_expect_not(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 3599999, &start_s),
        "it was looked for a moment ago");
    cr_expect(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 3590000, &start_s));
    learn(&secrets, start_s, 1, midnight_ms + 1000);
    cr_expect_not(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 60000, &start_s));
    period_secrets_doubt(&secrets);
    cr_expect(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 60000, &start_s));
    period_secrets_release(&secrets);
}

/* Else nobody would look for the next one until the clock is there again. */
Test(period_secrets, it_is_looked_for_though_the_clock_was_set_back)
{
    struct period_secrets secrets = {0};
    int64_t midnight_ms = (NOON_S + DAY_S / 2) * 1000;
    int64_t start_s = 0;
    period_secrets_init(&secrets);
    cr_expect(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 60000, &start_s));
    midnight_ms -= DAY_S * 1000;
    cr_expect_not(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 60000, &start_s));
    cr_expect(period_secrets_ahead(&secrets, ROTATE_DAY, midnight_ms - 59999, &start_s));
    cr_expect_eq(start_s * 1000, midnight_ms);
    period_secrets_release(&secrets);
}

Test(period_secrets, late_periods)
{
    struct period_secrets secrets = {0};
    static const int64_t late[] = {3 * DAY_S, DAY_S};
    period_secrets_init(&secrets);
    cr_expect_not(period_secrets_is_late(&secrets, DAY_S));
    cr_assert(period_secrets_set_late(&secrets, late, 2));
    cr_expect(period_secrets_is_late(&secrets, DAY_S));
    cr_expect(period_secrets_is_late(&secrets, 3 * DAY_S));
    cr_expect_not(period_secrets_is_late(&secrets, 2 * DAY_S));
    cr_assert(period_secrets_set_late(&secrets, NULL, 0));
    cr_expect_not(period_secrets_is_late(&secrets, DAY_S));
    cr_expect_eq(period_late_s(ROTATE_DAY, DAY_S), 4 * DAY_S);
    period_secrets_release(&secrets);
}

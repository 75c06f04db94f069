#include "storage/schema/identity.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "storage/time/units.h"
#include "tests/lib/dice.h"

TestSuite(identity, .timeout = 60);

static const struct secret secret = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
    18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};

static int64_t utc(const char *text)
{
    struct tm tm = {0};
    cr_assert_not_null(strptime(text, "%Y-%m-%d %H:%M:%S", &tm), "%s", text);
    return timegm(&tm);
}

static struct event event_of(
    const char *site, const char *user, const char *address, const char *agent)
{
    struct event event = {.at_s = 1795187834,
        .site = slice_of(site),
        .page = SLICE("/"),
        .user = slice_of(user),
        .agent = slice_of(agent)};
    event.address.len = (uint8_t)strlen(address);
    memcpy(event.address.bytes, address, strlen(address));
    return event;
}

/* Keys for @event, whose period has the same secret as all others. */
static struct identity_keys keys_in(enum rotation rotation, const struct event *event)
{
    static struct period_secret periods[4];
    static int turn;
    struct period_secret *period = &periods[turn++ % 4];
    *period = (struct period_secret){rotation_start_s(rotation, event->at_s), secret};
    return (struct identity_keys){&secret, rotation, period, 1, false};
}

static bool same_visitor_in(enum rotation rotation, const struct event *a, const struct event *b)
{
    struct visitor_id id_a;
    struct visitor_id id_b;
    struct identity_keys keys_a = keys_in(rotation, a);
    struct identity_keys keys_b = keys_in(rotation, b);
    cr_assert(identity_visitor(&keys_a, a, &id_a));
    cr_assert(identity_visitor(&keys_b, b, &id_b));
    return memcmp(&id_a, &id_b, sizeof(id_a)) == 0;
}

static bool same_visitor(struct event a, struct event b)
{
    return same_visitor_in(ROTATE_DAY, &a, &b);
}

static bool same_address(struct event a, struct event b)
{
    struct address_id id_a;
    struct address_id id_b;
    struct identity_keys keys = {.secret = &secret};
    cr_assert(identity_address(&keys, &a, &id_a));
    cr_assert(identity_address(&keys, &b, &id_b));
    return memcmp(&id_a, &id_b, sizeof(id_a)) == 0;
}

/* ---- who is the same ---- */

/* An integer 42 and a text "42" reach storage as the same text. */
Test(identity, a_user_is_the_same_whatever_else)
{
    struct event a = event_of("shop", "42", "", "");
    struct event b = event_of("shop", "42", "\x01\x02\x03\x04", "Firefox");
    b.at_s += 400 * DAY_S;
    b.page = SLICE("/other");
    cr_expect(same_visitor(a, b));
}

Test(identity, a_user_is_another_on_another_site)
{
    cr_expect_not(same_visitor(event_of("shop", "42", "", ""), event_of("blog", "42", "", "")));
    cr_expect_not(same_visitor(event_of("shop", "42", "", ""), event_of("shop", "43", "", "")));
    cr_expect_not(same_visitor(event_of("shop", "42", "", ""), event_of("shop", "042", "", "")));
    cr_expect_not(
        same_visitor(event_of("shop", "4", "", ""), event_of("shop4", "", "\x01\x01\x01\x01", "")));
}

Test(identity, without_a_user_address_and_agent)
{
    struct event a = event_of("shop", "", "\x01\x02\x03\x04", "Firefox");
    cr_expect(same_visitor(a, a));
    cr_expect_not(same_visitor(a, event_of("shop", "", "\x01\x02\x03\x05", "Firefox")));
    cr_expect_not(same_visitor(a, event_of("shop", "", "\x01\x02\x03\x04", "Safari")));
    cr_expect_not(same_visitor(a, event_of("shop", "", "\x01\x02\x03\x04", "")));
    cr_expect_not(same_visitor(a, event_of("blog", "", "\x01\x02\x03\x04", "Firefox")));
}

Test(identity, an_anonymous_id_goes_before_all)
{
    struct event a = event_of("shop", "42", "\x01\x02\x03\x04", "Firefox");
    struct event b = event_of("shop", "43", "", "");
    a.visitor = b.visitor = SLICE("42");
    cr_expect(same_visitor(a, b));
    b.visitor = SLICE("43");
    cr_expect_not(same_visitor(a, b));
    cr_expect_not(same_visitor(a, event_of("shop", "42", "", "")), "no user is an anonymous id");
    b = event_of("blog", "", "", "");
    b.visitor = a.visitor;
    cr_expect_not(same_visitor(a, b));
}

/* A user's data lies where the visits of the same user lie. */
Test(identity, a_user_is_the_visitor_without_an_id)
{
    struct event event = event_of("shop", "42", "", "");
    struct visitor_id visitor;
    struct visitor_id user;
    struct identity_keys keys = keys_in(ROTATE_DAY, &event);
    cr_assert(identity_visitor(&keys, &event, &visitor));
    identity_user(&secret, event.site, event.user, &user);
    cr_expect_arr_eq(visitor.bytes, user.bytes, sizeof(user.bytes));
}

/* What stands side by side in the text that is hashed cannot be shifted. */
Test(identity, boundaries)
{
    static const char v6[] = "\x01\x02\x03\x04zzzzzzzzzzzz";
    cr_expect_not(same_visitor(event_of("ab", "c", "", ""), event_of("a", "bc", "", "")));
    cr_expect_not(same_visitor(
        event_of("s", "", "\x01\x02\x03\x04", "zzzzzzzzzzzz"), event_of("s", "", v6, "")));
    /* a user that is spelt like an address's text, and the reverse */
    struct event address = event_of("s", "", "\x41\x42\x43\x44", "Agent");
    char user[] = "\x04"
                  "ABCD........xAgent";
    int64_t period_s = rotation_start_s(ROTATE_DAY, address.at_s);
    memcpy(user + 5, &period_s, sizeof(period_s));
    user[13] = 0;
    struct event event = event_of("s", "", "", "");
    event.user = (struct slice){user, sizeof(user) - 1};
    cr_expect_not(same_visitor(address, event));
    /* nor can an agent pretend a period */
    struct event a = address;
    struct event b = address;
    b.agent = SLICE("\0\0\0\0\0\0\0\0Agent");
    cr_expect_not(same_visitor(a, b));
}

Test(identity, agents_count_to_their_end)
{
    static char long_agent[EVENT_TEXT_MAX];
    memset(long_agent, 'a', sizeof(long_agent));
    struct event a = event_of("s", "", "0123456789abcdef", "");
    struct event b = a;
    a.agent = (struct slice){long_agent, sizeof(long_agent)};
    b.agent = (struct slice){long_agent, sizeof(long_agent) - 1};
    cr_expect_not(same_visitor(a, b));
}

Test(identity, the_longest_user_on_the_longest_site)
{
    char site[EVENT_SITE_MAX];
    char user[EVENT_USER_MAX];
    memset(site, 's', sizeof(site));
    memset(user, 'u', sizeof(user));
    struct event a = event_of("", "", "0123456789abcdef", "");
    a.site = (struct slice){site, sizeof(site)};
    a.user = (struct slice){user, sizeof(user)};
    struct event b = a;
    cr_expect(same_visitor(a, b));
    b.user.n--;
    cr_expect_not(same_visitor(a, b));
    cr_expect(same_address(a, b));
}

/* Part of the data's layout.  The hashes were made by another SipHash-2-4, in Python. */
Test(identity, hashes_never_change)
{
    static const struct {
        const char *site, *user, *address, *agent;
        enum rotation rotation;
        const char *visitor, *address_id;
    } cases[] = {{"shop", "42", "", "", ROTATE_DAY, "b5cd204eba37e5673096c52e8703bf7d", ""},
        {"default", "42", "\x01\x02\x03\x04", "x", ROTATE_NEVER, "7daa87e3d82cf6cfadad6ffbde634d7a",
            "5f5b12844d0a7517"},
        {"shop", "", "\x01\x02\x03\x04", "Firefox", ROTATE_DAY, "0a2fc4a99541aae0a2bd5afa69a3b4f6",
            "9bb481621022874d"},
        {"shop", "", "\x01\x02\x03\x04", "Firefox", ROTATE_WEEK, "bb411a39cb5d1bb7b36d99abe5f60f18",
            "9bb481621022874d"},
        {"shop", "", "\x01\x02\x03\x04", "Firefox", ROTATE_MONTH,
            "b066d12db5cca2b41aedfb9881adb3ad", "9bb481621022874d"},
        {"shop", "", "\x01\x02\x03\x04", "Firefox", ROTATE_NEVER,
            "3b40bb9194a34a556a1449db41cdb8f6", "9bb481621022874d"},
        {"a.b", "", "0123456789abcdef", "", ROTATE_DAY, "245b843d418aebcd8f7a11f34c5a62e8",
            "1a4fa86c40795f52"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct event event =
            event_of(cases[i].site, cases[i].user, cases[i].address, cases[i].agent);
        struct visitor_id visitor;
        struct address_id address;
        char text[40] = "";
        struct identity_keys keys = keys_in(cases[i].rotation, &event);
        cr_assert(identity_visitor(&keys, &event, &visitor));
        for (size_t b = 0; b < sizeof(visitor.bytes); b++) {
            snprintf(text + 2 * b, 3, "%02x", visitor.bytes[b]);
        }
        cr_expect_str_eq(text, cases[i].visitor, "case %zu: %s", i, text);
        if (!identity_address(&keys, &event, &address)) {
            cr_expect_str_empty(cases[i].address_id);
            continue;
        }
        for (size_t b = 0; b < sizeof(address.bytes); b++) {
            snprintf(text + 2 * b, 3, "%02x", address.bytes[b]);
        }
        cr_expect_str_eq(text, cases[i].address_id, "case %zu: %s", i, text);
    }
}

/* ---- addresses ---- */

Test(identity, addresses)
{
    struct event a = event_of("shop", "", "\x01\x02\x03\x04", "Firefox");
    struct event b = event_of("shop", "42", "\x01\x02\x03\x04", "Safari");
    b.at_s += 400 * DAY_S;
    cr_expect(same_address(a, b), "no agent, no user, no period");
    cr_expect_not(same_address(a, event_of("blog", "", "\x01\x02\x03\x04", "Firefox")));
    cr_expect_not(same_address(a, event_of("shop", "", "\x01\x02\x03\x05", "Firefox")));
    cr_expect_not(same_address(a, event_of("shop", "", "\x01\x02\x03\x04............", "Firefox")));
}

Test(identity, another_secret_is_another_hash)
{
    struct event event = event_of("shop", "42", "\x01\x02\x03\x04", "");
    struct visitor_id visitors[3];
    struct address_id addresses[3];
    for (int i = 0; i < 3; i++) {
        struct secret other = secret;
        other.bytes[i == 0 ? 0 : SECRET_SIZE / 2] ^= i == 2 ? 0 : 1;
        struct identity_keys keys = {.secret = &other};
        cr_assert(identity_visitor(&keys, &event, &visitors[i]));
        cr_assert(identity_address(&keys, &event, &addresses[i]));
    }
    /* the first half is the visitors', the second the addresses' */
    cr_expect_neq(memcmp(&visitors[0], &visitors[2], sizeof(visitors[0])), 0);
    cr_expect_eq(memcmp(&visitors[1], &visitors[2], sizeof(visitors[0])), 0);
    cr_expect_eq(memcmp(&addresses[0], &addresses[2], sizeof(addresses[0])), 0);
    cr_expect_neq(memcmp(&addresses[1], &addresses[2], sizeof(addresses[0])), 0);
}

Test(identity, nobody)
{
    struct event event = event_of("shop", "", "", "Firefox");
    struct visitor_id visitor;
    struct address_id address;
    struct identity_keys keys = keys_in(ROTATE_DAY, &event);
    cr_expect_not(identity_visitor(&keys, &event, &visitor));
    cr_expect_not(identity_address(&keys, &event, &address));
    event.user = SLICE("42");
    cr_expect(identity_visitor(&keys, &event, &visitor));
    cr_expect_not(identity_address(&keys, &event, &address));
}

/* ---- rotation ---- */

/* Addresses are hashed with the secret of their period alone, and names with the data's. */
Test(identity, each_period_has_its_secret)
{
    struct event event = event_of("shop", "", "\x01\x02\x03\x04", "Firefox");
    struct event named = event_of("shop", "42", "\x01\x02\x03\x04", "Firefox");
    struct period_secret periods[3];
    struct visitor_id visitors[3];
    struct address_id addresses[3];
    for (int i = 0; i < 3; i++) {
        periods[i] = (struct period_secret){
            rotation_start_s(ROTATE_DAY, event.at_s) + (i - 1) * DAY_S, secret};
    }
    struct identity_keys keys = {&secret, ROTATE_DAY, periods, 3, false};
    for (int i = 0; i < 3; i++) {
        struct visitor_id user;
        struct visitor_id before;
        cr_assert(identity_visitor(&keys, &named, &before));
        periods[1].secret.bytes[i == 2 ? SECRET_SIZE - 1 : 0] ^= i == 0 ? 0 : 1;
        cr_assert(identity_visitor(&keys, &event, &visitors[i]));
        cr_assert(identity_address(&keys, &event, &addresses[i]));
        cr_assert(identity_visitor(&keys, &named, &user));
        cr_expect_arr_eq(user.bytes, before.bytes, sizeof(user.bytes));
    }
    cr_expect_neq(memcmp(&visitors[0], &visitors[1], sizeof(visitors[0])), 0);
    cr_expect_neq(memcmp(&addresses[1], &addresses[2], sizeof(addresses[0])), 0);
}

Test(identity, an_address_without_a_secret_is_nobody)
{
    struct event event = event_of("shop", "", "\x01\x02\x03\x04", "Firefox");
    struct identity_keys keys = keys_in(ROTATE_DAY, &event);
    struct visitor_id visitor;
    struct address_id address;
    event.at_s += DAY_S;
    cr_expect_not(identity_visitor(&keys, &event, &visitor));
    cr_expect_not(identity_address(&keys, &event, &address));
    event.visitor = SLICE("an id");
    cr_expect(identity_visitor(&keys, &event, &visitor));
}

Test(identity, where_periods_end)
{
    int64_t day_s = utc("2026-11-22 00:00:00");
    cr_expect_eq(rotation_end_s(ROTATE_DAY, day_s), day_s + DAY_S);
    cr_expect_eq(
        rotation_end_s(ROTATE_WEEK, utc("2026-11-16 00:00:00")), utc("2026-11-23 00:00:00"));
    cr_expect_eq(
        rotation_end_s(ROTATE_MONTH, utc("2026-02-01 00:00:00")), utc("2026-03-01 00:00:00"));
    cr_expect_eq(rotation_end_s(ROTATE_NEVER, 0), INT64_MAX);
}

Test(identity, periods)
{
    static const struct {
        enum rotation rotation;
        const char *at, *start;
    } cases[] = {
        {ROTATE_DAY, "2026-11-20 00:00:00", "2026-11-20 00:00:00"},
        {ROTATE_DAY, "2026-11-20 23:59:59", "2026-11-20 00:00:00"},
        {ROTATE_DAY, "1970-01-01 00:00:00", "1970-01-01 00:00:00"},
        {ROTATE_WEEK, "2026-11-20 15:17:14", "2026-11-16 00:00:00"}, /* a Friday */
        {ROTATE_WEEK, "2026-11-16 00:00:00", "2026-11-16 00:00:00"}, /* the Monday */
        {ROTATE_WEEK, "2026-11-15 23:59:59", "2026-11-09 00:00:00"}, /* the Sunday before */
        {ROTATE_WEEK, "2026-11-22 23:59:59", "2026-11-16 00:00:00"},
        {ROTATE_WEEK, "2027-01-01 00:00:00", "2026-12-28 00:00:00"},
        {ROTATE_WEEK, "1970-01-05 00:00:00", "1970-01-05 00:00:00"},
        {ROTATE_MONTH, "2026-11-30 23:59:59", "2026-11-01 00:00:00"},
        {ROTATE_MONTH, "2026-12-01 00:00:00", "2026-12-01 00:00:00"},
        {ROTATE_MONTH, "2024-02-29 12:00:00", "2024-02-01 00:00:00"},
        {ROTATE_MONTH, "2024-03-01 00:00:00", "2024-03-01 00:00:00"},
        {ROTATE_NEVER, "2026-11-20 15:17:14", "1970-01-01 00:00:00"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(rotation_start_s(cases[i].rotation, utc(cases[i].at)), utc(cases[i].start),
            "%s", cases[i].at);
    }
}

/* Against libc's calendar, near the borders. */
Test(identity, periods_agree_with_the_calendar)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    for (int i = 0; i < 5000; i++) {
        int64_t at_s = 4 * DAY_S + dice_below(&dice, 200 * 365) * DAY_S + dice_below(&dice, 3) - 1;
        time_t time = (time_t)at_s;
        struct tm tm;
        gmtime_r(&time, &tm);
        int64_t day_s = at_s - tm.tm_hour * 3600 - tm.tm_min * 60 - tm.tm_sec;
        cr_assert_eq(rotation_start_s(ROTATE_DAY, at_s), day_s, "TALLYD_TEST_SEED=%" PRIu64, seed);
        cr_assert_eq(rotation_start_s(ROTATE_WEEK, at_s), day_s - (tm.tm_wday + 6) % 7 * DAY_S,
            "TALLYD_TEST_SEED=%" PRIu64 ": %lld", seed, (long long)at_s);
        cr_assert_eq(rotation_start_s(ROTATE_MONTH, at_s), day_s - (tm.tm_mday - 1) * DAY_S,
            "TALLYD_TEST_SEED=%" PRIu64 ": %lld", seed, (long long)at_s);
    }
}

Test(identity, who_has_no_user_is_renamed_with_the_period)
{
    static const struct {
        enum rotation rotation;
        const char *a, *b;
        bool same;
    } cases[] = {
        {ROTATE_DAY, "2026-11-20 00:00:00", "2026-11-20 23:59:59", true},
        {ROTATE_DAY, "2026-11-20 23:59:59", "2026-11-21 00:00:00", false},
        {ROTATE_WEEK, "2026-11-16 00:00:00", "2026-11-22 23:59:59", true},
        {ROTATE_WEEK, "2026-11-15 23:59:59", "2026-11-16 00:00:00", false},
        {ROTATE_MONTH, "2026-11-01 00:00:00", "2026-11-30 23:59:59", true},
        {ROTATE_MONTH, "2026-11-30 23:59:59", "2026-12-01 00:00:00", false},
        {ROTATE_NEVER, "1970-01-01 00:00:00", "2026-12-01 00:00:00", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct event a = event_of("shop", "", "\x01\x02\x03\x04", "Firefox");
        struct event b = a;
        a.at_s = utc(cases[i].a);
        b.at_s = utc(cases[i].b);
        cr_expect_eq(same_visitor_in(cases[i].rotation, &a, &b), cases[i].same, "%s %s", cases[i].a,
            cases[i].b);
    }
}

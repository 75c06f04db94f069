#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/text/check.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

typedef const char *(*check_fn)(struct slice);

static char filler[EVENT_TEXT_MAX + 1];

static struct slice long_text(size_t n)
{
    memset(filler, 'a', sizeof(filler));
    return (struct slice){filler, n};
}

/* Success scenarios */

Test(event_check, lengths_up_to_the_limit_are_accepted)
{
    static const struct {
        check_fn check;
        size_t least, most;
    } rows[] = {
        {event_check_page, 1, EVENT_PAGE_MAX},
        {event_check_user, 1, EVENT_USER_MAX},
        {event_check_site, 1, EVENT_SITE_MAX},
        {event_check_action, 1, EVENT_ACTION_MAX},
        {event_check_agent, 0, EVENT_TEXT_MAX},
        {event_check_referrer, 0, EVENT_TEXT_MAX},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_expect_null(rows[i].check(long_text(rows[i].least)), "row %zu", i);
        cr_expect_null(rows[i].check(long_text(rows[i].most)), "row %zu", i);
        cr_expect_not_null(rows[i].check(long_text(rows[i].most + 1)), "row %zu", i);
        if (rows[i].least > 0) {
            cr_expect_not_null(rows[i].check(long_text(0)), "row %zu", i);
        }
    }
}

Test(event_check, pages_and_users_hold_anything_but_controls)
{
    for (unsigned c = 0; c < 256; c++) {
        bool control = c < ' ' || c == 0x7f;

        /* at every place of a word, and behind the last whole one */
        for (size_t at = 0; at < 19; at++) {
            char text[19] = "/0123456789abcdef/\x80";

            text[at] = (char)c;
            cr_expect_eq(event_check_page((struct slice){text, 19}) != NULL, control, "%u", c);
            cr_expect_eq(event_check_user((struct slice){text, 19}) != NULL, control, "%u", c);
        }
    }
}

Test(event_check, sites_and_actions_hold_their_alphabet)
{
    for (unsigned c = 0; c < 256; c++) {
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool mark = c == '.' || c == '_' || c == '-';
        char text[2] = {(char)c, (char)c};

        cr_expect_eq(event_check_site((struct slice){text, 1}) == NULL, letter, "%u", c);
        cr_expect_eq(event_check_action((struct slice){text, 1}) == NULL,
            letter || mark || c == ':', "%u", c);
        text[0] = 'a';
        cr_expect_eq(event_check_site((struct slice){text, 2}) == NULL, letter || mark, "%u", c);
    }
}

Test(event_check, both_ends_of_time_are_inside)
{
    cr_expect_null(event_check_time(100, 100, 200));
    cr_expect_null(event_check_time(200, 100, 200));
    cr_expect_null(event_check_time(INT64_MIN, INT64_MIN, 200));
    cr_expect_str_eq(event_check_time(99, 100, 200), "ts is older than everything that is kept");
    cr_expect_str_eq(event_check_time(201, 100, 200), "ts is too far in the future");
}

Test(event_check, addresses_become_canonical)
{
    static const struct {
        const char *text;
        uint8_t len;
        uint8_t bytes[16];
    } rows[] = {
        {"203.0.113.7", 4, {203, 0, 113, 7}},
        {"0.0.0.0", 4, {0}},
        {"255.255.255.255", 4, {255, 255, 255, 255}},
        {"::ffff:203.0.113.7", 4, {203, 0, 113, 7}},
        {"::FFFF:cb00:7107", 4, {203, 0, 113, 7}},
        {"0:0:0:0:0:ffff:203.0.113.7", 4, {203, 0, 113, 7}},
        {"::", 16, {0}},
        {"::1", 16, {[15] = 1}},
        {"2001:DB8::1", 16, {0x20, 1, 0xd, 0xb8, [15] = 1}},
        {"2001:0db8:0:0:0:0:0:1", 16, {0x20, 1, 0xd, 0xb8, [15] = 1}},
        {"::203.0.113.7", 16, {[12] = 203, 0, 113, 7}}, /* compatible, not mapped */
        {"2001:0db8:0000:0000:0000:0000:255.255.255.255", 16,
            {0x20, 1, 0xd, 0xb8, [12] = 255, 255, 255, 255}},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct event_address address;

        memset(&address, 0xaa, sizeof(address));
        cr_expect_null(event_parse_address(slice_of(rows[i].text), &address), "%s", rows[i].text);
        cr_expect_eq(address.len, rows[i].len, "%s", rows[i].text);
        cr_expect_arr_eq(address.bytes, rows[i].bytes, 16, "%s", rows[i].text);
    }
}

/* Texts near to addresses: ours and inet_pton() must say the same. */
Test(event_check, agrees_with_inet_pton)
{
    static const char alphabet[] = "0125..9:a";
    unsigned accepted = 0;

    srand(1);
    for (int round = 0; round < 300000; round++) {
        struct event_address address;
        char text[24];
        uint8_t bytes[16];
        size_t n = (size_t)rand() % 16;

        for (size_t i = 0; i < n; i++) {
            text[i] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
        }
        if (round % 2 == 0) {
            n = (size_t)snprintf(text, sizeof(text), "%d.%d.0%d.%d", rand() % 300, rand() % 300,
                rand() % 3, rand() % 300);
        }
        if (round % 4 == 0) {
            n = (size_t)snprintf(
                text, sizeof(text), "%d.%d.%d.%d", rand() % 260, rand() % 260, rand() % 9, 7);
        }
        text[n] = 0;
        bool expected =
            inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
        bool got = event_parse_address((struct slice){text, n}, &address) == NULL;

        cr_assert_eq(got, expected, "%s", text);
        if (got && address.len == 4) {
            cr_assert_arr_eq(address.bytes, bytes, 4, "%s", text);
        }
        accepted += got;
    }
    cr_expect_gt(accepted, 30000u);
}

/* Failure scenarios */

Test(event_check, what_is_no_address_is_refused)
{
    static const struct slice rows[] = {
        {NULL, 0},
        {"", 0},
        {"1.2.3", 5},
        {"1.2.3.4.5", 9},
        {"1.2.3.4.", 8},
        {".1.2.3.4", 8},
        {"1..2.3", 6},
        {"256.1.1.1", 9},
        {"01.2.3.4", 8},
        {"1.2.3.04", 8},
        {"1.2.3.00", 8},
        {"+1.2.3.4", 8},
        {" 1.2.3.4", 8},
        {"1.2.3.4 ", 8},
        {"1.2.3.4\0", 8},
        {"::1\0", 4},
        {"16909060", 8},
        {"0x1.2.3.4", 9},
        {"1.2.3.4/32", 10},
        {"1.2.3.4:80", 10},
        {"[::1]", 5},
        {"fe80::1%eth0", 12},
        {":::", 3},
        {"1::2::3", 7},
        {"12345::", 7},
        {"::ffff:1.2.3.256", 16},
        {"localhost", 9},
        {"0000:0000:0000:0000:0000:0000:255.255.255.255.255", 49},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct event_address address = {.len = 99};

        cr_expect_str_eq(event_parse_address(rows[i], &address),
            "ip must be an IPv4 or IPv6 address", "row %zu", i);
        cr_expect_eq(address.len, 99, "row %zu", i);
    }
}

Test(name, names_have_letters_digits_and_three_signs)
{
    char longest[65];
    memset(longest, 'a', sizeof(longest));
    cr_expect(name_valid(SLICE("a")));
    cr_expect(name_valid(SLICE("AZaz09._-")));
    cr_expect(name_valid((struct slice){longest, 64}));
    cr_expect_not(name_valid((struct slice){longest, 65}));
    cr_expect_not(name_valid(SLICE("")));
    for (int c = 0; c < 256; c++) {
        char text[] = {'a', (char)c};
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-';
        cr_expect_eq(name_valid((struct slice){text, 2}), good, "byte %d", c);
    }
}

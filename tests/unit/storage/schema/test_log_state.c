#include "storage/schema/log_state.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "tests/lib/dice.h"

TestSuite(log_state, .timeout = 60);

#define ID SLICE("0123456789abcdef")

Test(log_state, ids)
{
    cr_expect(log_id_is(ID));
    static const char *const none[] = {"", "0123456789abcde", "0123456789abcdef0",
        "0123456789abcdeF", "0123456789abcdeg", "cfg", "st", "ver", "over", "kept", "zones",
        "users", "swept", "closed"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        cr_expect_not(log_id_is(slice_of(none[i])), "%s", none[i]);
    }
}

/* ---- heads ---- */

Test(log_state, a_head)
{
    struct log_head head;
    cr_assert(log_head_parse(ID, SLICE("17 fedcba9876543210 1795187834123"), &head));
    cr_expect_str_eq(head.id, "0123456789abcdef");
    cr_expect_str_eq(head.era, "fedcba9876543210");
    cr_expect_eq(head.n, 17u);
    cr_expect_eq(head.time_ms, INT64_C(1795187834123));
    cr_assert(log_head_parse(ID, SLICE("0 0 1795187834123"), &head)); /* as it is registered */
    cr_expect_str_eq(head.era, "0");
    cr_expect_eq(head.n, 0u);
    cr_assert(log_head_parse(ID, SLICE("999999999999999999 0 0"), &head));
    cr_expect_eq(head.n, UINT64_C(999999999999999999));
}

Test(log_state, no_head)
{
    static const char *const none[] = {"", " ", "17", "17 ", "17 a", "17 a ", "17  5", "17 a x",
        "17 a 5 ", "17 a 5x", " 17 a 5", "-1 a 5", "+1 a 5", "x a 5", "17 a -5", "17 a 5 5",
        "1000000000000000000 a 5", "17 a 1000000000000000000", "17 fedcba98765432100 5"};
    struct log_head head = {.n = 4711};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        cr_expect_not(log_head_parse(ID, slice_of(none[i]), &head), "\"%s\"", none[i]);
    }
    cr_expect_not(log_head_parse(SLICE("cfg"), SLICE("17 a 5"), &head));
    cr_expect_eq(head.n, 4711u);
}

Test(log_state, how_many_were_closed)
{
    uint64_t n = 4711;
    cr_expect_not(log_closed_parse(ID, SLICE("17"), &n));
    cr_expect_not(log_closed_parse(SLICE("close"), SLICE("17"), &n));
    cr_expect_not(log_closed_parse(SLICE("closed"), SLICE(""), &n));
    cr_expect_not(log_closed_parse(SLICE("closed"), SLICE("17 a 5"), &n));
    cr_expect_not(log_closed_parse(SLICE("closed"), SLICE("-1"), &n));
    cr_expect_eq(n, UINT64_C(4711));
    cr_assert(log_closed_parse(SLICE("closed"), SLICE("17"), &n));
    cr_expect_eq(n, UINT64_C(17));
}

/* ---- cursors ---- */

static struct reply text_of(const char *text)
{
    return (struct reply){.type = REPLY_TEXT, .text = slice_of(text)};
}

/* All stripes are at @at. */
static struct log_cursor even(struct log_position at)
{
    struct log_cursor cursor;
    for (unsigned c = 0; c < LOG_STRIPES; c++) {
        cursor.at[c] = at;
    }
    return cursor;
}

static void expect_equal(
    const struct log_cursor *is, const struct log_cursor *expected, const char *text)
{
    for (unsigned c = 0; c < LOG_STRIPES; c++) {
        cr_expect_eq(is->at[c].whole, expected->at[c].whole, "%s, stripe %u", text, c);
        cr_expect_eq(is->at[c].events, expected->at[c].events, "%s, stripe %u", text, c);
    }
}

Test(log_state, cursors)
{
    static const struct {
        const char *text;
        struct log_position at;
    } cases[] = {
        {"0", {0, 0}},
        {"1", {1, 0}},
        {"17", {17, 0}},
        {"1:5", {0, 5}},
        {"17:200000", {16, 200000}},
        {"999999999999999999:1", {UINT64_C(999999999999999998), 1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reply field = text_of(cases[i].text);
        struct log_cursor expected = even(cases[i].at);
        struct log_cursor cursor;
        char text[LOG_CURSOR_TEXT];
        cr_assert(log_cursor_parse(&field, &cursor), "%s", cases[i].text);
        expect_equal(&cursor, &expected, cases[i].text);
        cr_expect_eq(log_cursor_whole(&cursor), cases[i].at.whole);
        cr_expect_eq(log_cursor_print(&cursor, text), strlen(cases[i].text));
        cr_expect_str_eq(text, cases[i].text);
    }
}

/* In the middle of a fold some stripes are ahead of others. */
Test(log_state, cursors_of_stripes_that_differ)
{
    static const struct {
        const char *text;
        unsigned first, second; /* so many stripes at 12, then so many at 9:3, the others at 8 */
    } cases[] = {
        {"12*5,9:3,8*26", 5, 1},
        {"12,8*31", 1, 0},
        {"12*31,8", 31, 0},
        {"9:3,8*31", 0, 1},
        {"12*31,9:3", 31, 1},
        {"12,9:3,8*30", 1, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reply field = text_of(cases[i].text);
        struct log_cursor expected = even((struct log_position){8, 0});
        struct log_cursor cursor;
        char text[LOG_CURSOR_TEXT];
        for (unsigned c = 0; c < cases[i].first + cases[i].second; c++) {
            expected.at[c] =
                c < cases[i].first ? (struct log_position){12, 0} : (struct log_position){8, 3};
        }
        cr_assert(log_cursor_parse(&field, &cursor), "%s", cases[i].text);
        expect_equal(&cursor, &expected, cases[i].text);
        cr_expect_eq(log_cursor_whole(&cursor), 8u, "%s", cases[i].text);
        cr_expect_eq(log_cursor_print(&cursor, text), strlen(cases[i].text));
        cr_expect_str_eq(text, cases[i].text);
    }
    struct reply field = text_of("8*16,8*16"); /* as cursors.lua may leave it */
    struct log_cursor cursor;
    char text[LOG_CURSOR_TEXT];
    cr_assert(log_cursor_parse(&field, &cursor));
    (void)log_cursor_print(&cursor, text);
    cr_expect_str_eq(text, "8");
}

Test(log_state, entry_n_is_not_complete)
{
    struct log_cursor cursor = even((struct log_position){4711, 4711});
    struct log_cursor expected = even((struct log_position){16, 0});
    struct reply field = text_of("17:0"); /* begun, and of it nothing is counted */
    cr_assert(log_cursor_parse(&field, &cursor));
    expect_equal(&cursor, &expected, "17:0");
    field = (struct reply){.type = REPLY_NIL};
    expected = even((struct log_position){0, 0});
    cr_assert(log_cursor_parse(&field, &cursor));
    expect_equal(&cursor, &expected, "nil");
}

Test(log_state, no_cursor)
{
    static const char *const none[] = {"", ":", "17:", ":5", "0:5", "17:5:", "17:5:5", "17 ", " 17",
        "17:x", "x", "-1", "1000000000000000000", "17:1000000000000000000", "17*", "17*0", "17*31",
        "17*33", "17*32,", "17*32,17", "17,", ",17*31", "17,17", "17*16,17*15", "17*16,17*17",
        "17*x,17*31", "17*31;17", "17*31,x", "17*999999999999999999"};
    struct log_cursor cursor = even((struct log_position){4711, 0});
    struct log_cursor untouched = cursor;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct reply field = text_of(none[i]);
        cr_expect_not(log_cursor_parse(&field, &cursor), "\"%s\"", none[i]);
    }
    struct reply number = {.type = REPLY_INTEGER, .integer = 17};
    cr_expect_not(log_cursor_parse(&number, &cursor));
    expect_equal(&cursor, &untouched, "untouched");
}

Test(log_state, any_cursor_comes_back)
{
    struct dice dice = dice_make(dice_seed());
    for (int i = 0; i < 10000; i++) {
        struct log_cursor cursor, back;
        char text[LOG_CURSOR_TEXT];
        for (unsigned c = 0; c < LOG_STRIPES; c++) {
            bool same = c > 0 && dice_chance(&dice, 80);
            int64_t whole = dice_below(&dice, INT64_C(1) << dice_below(&dice, 59));
            int64_t events = dice_below(&dice, INT64_C(1) << dice_below(&dice, 59));
            cursor.at[c] =
                same ? cursor.at[c - 1] : (struct log_position){(uint64_t)whole, (uint64_t)events};
        }
        size_t n = log_cursor_print(&cursor, text);
        struct reply field = text_of(text);
        cr_assert_eq(n, strlen(text));
        cr_assert_lt(n, LOG_CURSOR_TEXT);
        cr_assert(log_cursor_parse(&field, &back), "%s", text);
        expect_equal(&back, &cursor, text);
    }
}

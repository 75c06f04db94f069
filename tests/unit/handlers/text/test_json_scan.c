#include <criterion/criterion.h>
#include <stdlib.h>

#include "handlers/text/json_scan.h"
#include "handlers/text/json_text.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* A scan of a heap copy that ends with the text: a sanitizer sees one byte too many. */
struct scanned {
    char *text;
    struct json_scan scan;
};

static struct scanned scan_of(struct slice text)
{
    struct scanned s = {.text = malloc(text.n + (text.n == 0))};

    memcpy(s.text, text.p, text.n);
    json_scan_init(&s.scan, s.text, text.n, 32);
    return s;
}

/* A whole document, any value. */
static bool is_json(struct slice text)
{
    struct scanned s = scan_of(text);
    bool ok = json_scan_skip(&s.scan) && json_scan_finish(&s.scan);

    cr_expect_eq(ok, s.scan.error == NULL);
    free(s.text);
    return ok;
}

/* Success scenarios */

Test(json_scan, peek_tells_the_kind)
{
    static const struct {
        const char *text;
        enum scan_kind kind;
    } rows[] = {
        {"{", SCAN_OBJECT},
        {" \t\r\n[", SCAN_ARRAY},
        {"\"", SCAN_STRING},
        {"-", SCAN_NUMBER},
        {"0", SCAN_NUMBER},
        {"9", SCAN_NUMBER},
        {"t", SCAN_TRUE},
        {"f", SCAN_FALSE},
        {"n", SCAN_NULL},
        {"", SCAN_BAD},
        {"+", SCAN_BAD},
        {"]", SCAN_BAD},
        {"'", SCAN_BAD},
        {"\xef\xbb\xbf{", SCAN_BAD},
        {"\xa0", SCAN_BAD},
        {"\f", SCAN_BAD},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scanned s = scan_of(slice_of(rows[i].text));

        cr_expect_eq(json_scan_peek(&s.scan), rows[i].kind, "row %zu", i);
        free(s.text);
    }
}

Test(json_scan, every_value_of_the_grammar_is_json)
{
    static const char *const rows[] = {
        "0", "-0", "1", "-1", "10", "1.0", "1.05", "-0.5", "1e1", "1E+1", "1e-1", "0e0", "1.5e00",
        "1e999999999999999999999", "123456789012345678901234567890", "true", "false", "null",
        "\"\"", "\"a\"", "{}", "[]", "[ ]", "{ }", "[1]", "[1,2]", "[[],{}]", " [ 1 , 2 ] ",
        "{\"a\":1}", "{ \"a\" : 1 , \"a\" : 2 }", "{\"\":null}", "[\"\\u0041\\n\\/\"]",
        "\"\x7f\"", /* DEL is no control to RFC 8259 */
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_expect(is_json(slice_of(rows[i])), "%s", rows[i]);
    }
}

Test(json_scan, strings_are_unescaped)
{
    static const struct {
        struct slice text, expected;
    } rows[] = {
        {SLICE("\"\""), SLICE("")},
        {SLICE("\"plain\""), SLICE("plain")},
        {SLICE("\"longer than one word of eight\""), SLICE("longer than one word of eight")},
        {SLICE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), SLICE("\"\\/\b\f\n\r\t")},
        {SLICE("\"a\\u0062c\""), SLICE("abc")},
        {SLICE("\"\\u00e9\\u00E9\""), SLICE("\xc3\xa9\xc3\xa9")},
        {SLICE("\"\\u4eac\""), SLICE("\xe4\xba\xac")},
        {SLICE("\"\\ud83d\\ude00\""), SLICE("\xf0\x9f\x98\x80")},
        {SLICE("\"\\udbff\\udfff\""), SLICE("\xf4\x8f\xbf\xbf")},
        {SLICE("\"\\uffff\""), SLICE("\xef\xbf\xbf")},
        {SLICE("\"\xc3\xa9\\n\xe4\xba\xac then more plain text\""),
            SLICE("\xc3\xa9\n\xe4\xba\xac then more plain text")},
        {SLICE("\"\\\\u0041\""), SLICE("\\u0041")},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scanned s = scan_of(rows[i].text);
        struct slice got = {NULL, 0};

        cr_expect_eq(json_scan_peek(&s.scan), SCAN_STRING);
        cr_expect(json_scan_string(&s.scan, &got), "row %zu", i);
        cr_expect(slice_equal(got, rows[i].expected), "row %zu", i);
        cr_expect_null(s.scan.fault, "row %zu", i);
        cr_expect(json_scan_finish(&s.scan), "row %zu", i);
        free(s.text);
    }
}

/* The word at a time and the byte at a time must stop at the same place, for every byte. */
Test(json_scan, plain_text_ends_at_the_right_byte)
{
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < 20; at++) {
            char text[20];
            bool plain = c >= ' ' && c < 0x80 && c != '"' && c != '\\';

            memset(text, 'a', sizeof(text));
            text[at] = (char)c;
            if (at + 1 < sizeof(text)) {
                text[at + 1] = '"'; /* a mark above the lowest one must not win */
            }
            cr_assert_eq(json_text_plain(text, text + 20) - text,
                plain ? (ptrdiff_t)(at + 1) : (ptrdiff_t)at, "%u at %zu", c, at);
        }
    }
}

Test(json_scan, an_unusable_string_is_a_fault_and_the_scan_goes_on)
{
    static const struct {
        struct slice text;
        const char *fault;
    } rows[] = {
        {SLICE("[\"\xff\",1]"), "invalid UTF-8"},
        {SLICE("[\"\xc3\",1]"), "invalid UTF-8"},
        {SLICE("[\"\xed\xa0\x80\",1]"), "invalid UTF-8"},
        {SLICE("[\"\\u0000\",1]"), "\\u0000 is not allowed"},
        {SLICE("[\"\\ud800\",1]"), "half of a surrogate pair"},
        {SLICE("[\"\\udc00\",1]"), "half of a surrogate pair"},
        {SLICE("[\"\\ud800x\",1]"), "half of a surrogate pair"},
        {SLICE("[\"\\ud800\\n\",1]"), "half of a surrogate pair"},
        {SLICE("[\"\\ud800\\ud800\",1]"), "half of a surrogate pair"},
        {SLICE("[\"\\ud800\\u0041\",1]"), "half of a surrogate pair"},
        {SLICE("[\"\\udc00\\ud800\",1]"), "half of a surrogate pair"},
        {SLICE("[{\"\xff\":2},1]"), "invalid UTF-8"},
        {SLICE("[\"\\u0000\",\"\xff\"]"), "\\u0000 is not allowed"}, /* the first is told */
        {SLICE("[\"\\u0000\xff\"]"), "\\u0000 is not allowed"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scanned s = scan_of(rows[i].text);

        cr_expect(json_scan_skip(&s.scan) && json_scan_finish(&s.scan), "row %zu", i);
        cr_expect_str_eq(s.scan.fault, rows[i].fault, "row %zu", i);
        free(s.text);
    }
}

Test(json_scan, numbers_are_cut_exactly)
{
    static const struct {
        const char *text;
        int64_t cut;
        bool integer;
    } rows[] = {
        {"0", 0, true},
        {"-0", 0, true},
        {"1763650000", 1763650000, true},
        {"1763650000.999", 1763650000, false},
        {"1.763650000999e9", 1763650000, false},
        {"17636500009e-1", 1763650000, false},
        {"176365E4", 1763650000, false},
        {"176365e+4", 1763650000, false},
        {"0.5", 0, false},
        {"0.0000000000000000000000000000012e30", 1, false},
        {"0.0000000000000000000000000000012e31", 12, false},
        {"1e-400", 0, false},
        {"0e999999999999999999999999", 0, false},
        {"1e-999999999999999999999999", 0, false},
        {"99999999999999999", 99999999999999999, true},
        {"99999999999999999.9", 99999999999999999, false},
        {"100000000000000000", INT64_MAX, true},
        {"1e17", INT64_MAX, false},
        {"1e999999999999999999999999", INT64_MAX, false},
        {"18446744073709551615", INT64_MAX, true},
        {"18446744073709551616", INT64_MAX, true},
        {"99999999999999999999", INT64_MAX, true},
        {"100000000000000000000", INT64_MAX, true},
        {"-9223372036854775808", INT64_MAX, true},
        {"-9223372036854775809", INT64_MAX, true},
        {"-10000000000000000000", INT64_MAX, true},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scanned s = scan_of(slice_of(rows[i].text));
        struct json_number number;

        cr_expect_eq(json_scan_peek(&s.scan), SCAN_NUMBER);
        cr_expect(json_scan_number(&s.scan, &number), "%s", rows[i].text);
        cr_expect(json_scan_finish(&s.scan), "%s", rows[i].text);
        cr_expect(slice_equal(number.text, slice_of(rows[i].text)), "%s", rows[i].text);
        cr_expect_eq(number.negative, rows[i].text[0] == '-', "%s", rows[i].text);
        cr_expect_eq(number.integer, rows[i].integer, "%s", rows[i].text);
        cr_expect_eq(json_number_cut(&number), rows[i].cut, "%s", rows[i].text);
        free(s.text);
    }
}

Test(json_scan, containers_are_walked_by_hand)
{
    struct scanned s = scan_of(SLICE("{\"a\" : [ 1, [] ,{}], \"b\":{}}"));
    enum scan_step step = json_scan_open(&s.scan, '}');
    struct slice name;

    cr_assert_eq(step, SCAN_ITEM);
    cr_assert(json_scan_name(&s.scan, &name));
    cr_expect(slice_equal(name, SLICE("a")));
    cr_expect_eq(json_scan_peek(&s.scan), SCAN_ARRAY);
    cr_expect(json_scan_skip(&s.scan));
    cr_expect_eq(json_scan_next(&s.scan, '}'), SCAN_ITEM);
    cr_assert(json_scan_name(&s.scan, &name));
    cr_expect(slice_equal(name, SLICE("b")));
    cr_expect_eq(json_scan_peek(&s.scan), SCAN_OBJECT);
    cr_expect_eq(json_scan_open(&s.scan, '}'), SCAN_CLOSED);
    cr_expect_eq(json_scan_next(&s.scan, '}'), SCAN_CLOSED);
    cr_expect(json_scan_at_end(&s.scan));
    cr_expect_eq(s.scan.depth, 0u);
    free(s.text);
}

Test(json_scan, depth_is_bounded_exactly)
{
    static const char brackets[] = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" /* 33 */
                                   "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]";
    struct scanned s = scan_of(SLICE("[1,[[2]],{\"a\":[[]]}]"));

    cr_expect(is_json((struct slice){brackets + 1, 64}));
    cr_expect_not(is_json((struct slice){brackets, 66}));
    s.scan.depth_max = 4;
    cr_expect(json_scan_skip(&s.scan));
    json_scan_init(&s.scan, s.text, 21, 3);
    cr_expect_not(json_scan_skip(&s.scan));
    cr_expect_str_eq(s.scan.error, "nested too deeply");
    free(s.text);
}

/* Failure scenarios */

Test(json_scan, errors_are_told_with_their_place)
{
    static const struct {
        struct slice text;
        size_t line, column;
        const char *error;
    } rows[] = {
        {SLICE(""), 1, 1, "a value is expected"},
        {SLICE("  \n "), 2, 2, "a value is expected"},
        {SLICE("tru"), 1, 1, "a value is expected"},
        {SLICE("truE"), 1, 1, "a value is expected"},
        {SLICE("nul"), 1, 1, "a value is expected"},
        {SLICE("truex"), 1, 5, "nothing may follow the value"},
        {SLICE("[1 2]"), 1, 4, "',' or ']' is expected"},
        {SLICE("[1"), 1, 3, "',' or ']' is expected"},
        {SLICE("[1}"), 1, 3, "',' or ']' is expected"},
        {SLICE("[1,]"), 1, 4, "a value is expected"},
        {SLICE("[,1]"), 1, 2, "a value is expected"},
        {SLICE("["), 1, 2, "a value is expected"},
        {SLICE("{"), 1, 2, "the name of a member is expected"},
        {SLICE("{1:2}"), 1, 2, "the name of a member is expected"},
        {SLICE("{\"a\":1,}"), 1, 8, "the name of a member is expected"},
        {SLICE("{\"a\"}"), 1, 5, "':' is expected"},
        {SLICE("{\"a\" 1}"), 1, 6, "':' is expected"},
        {SLICE("{\"a\":}"), 1, 6, "a value is expected"},
        {SLICE("{\"a\":1]"), 1, 7, "',' or '}' is expected"},
        {SLICE("{\"a\":1"), 1, 7, "',' or '}' is expected"},
        {SLICE("1 2"), 1, 3, "nothing may follow the value"},
        {SLICE("[]]"), 1, 3, "nothing may follow the value"},
        {SLICE("{} \0"), 1, 4, "nothing may follow the value"},
        {SLICE("01"), 1, 2, "a number must not begin with 0"},
        {SLICE("-01"), 1, 3, "a number must not begin with 0"},
        {SLICE("-"), 1, 2, "a digit is expected"},
        {SLICE("-a"), 1, 2, "a digit is expected"},
        {SLICE("1."), 1, 3, "a digit is expected"},
        {SLICE("1.e1"), 1, 3, "a digit is expected"},
        {SLICE("1e"), 1, 3, "a digit is expected"},
        {SLICE("1e+"), 1, 4, "a digit is expected"},
        {SLICE(".5"), 1, 1, "a value is expected"},
        {SLICE("+1"), 1, 1, "a value is expected"},
        {SLICE("0x10"), 1, 2, "nothing may follow the value"},
        {SLICE("NaN"), 1, 1, "a value is expected"},
        {SLICE("'a'"), 1, 1, "a value is expected"},
        {SLICE("[1]//"), 1, 4, "nothing may follow the value"},
        {SLICE("\""), 1, 2, "a string is not closed"},
        {SLICE("\"abc"), 1, 5, "a string is not closed"},
        {SLICE("\"abc\\"), 1, 6, "a string is not closed"},
        {SLICE("\"abc\\\""), 1, 7, "a string is not closed"},
        {SLICE("\"a\nb\""), 1, 3, "a control character in a string must be escaped"},
        {SLICE("\"a\tb\""), 1, 3, "a control character in a string must be escaped"},
        {SLICE("\"a\0b\""), 1, 3, "a control character in a string must be escaped"},
        {SLICE("\"\\n\x1f\""), 1, 4, "a control character in a string must be escaped"},
        {SLICE("\"\\x41\""), 1, 2, "unknown escape"},
        {SLICE("\"\\'\""), 1, 2, "unknown escape"},
        {SLICE("\"\\U0041\""), 1, 2, "unknown escape"},
        {SLICE("\"\\u00g0\""), 1, 2, "\\u needs four hexadecimal digits"},
        {SLICE("\"\\u41\""), 1, 2, "\\u needs four hexadecimal digits"},
        {SLICE("\"\\u004"), 1, 2, "\\u needs four hexadecimal digits"},
        {SLICE("\"\\ud800\\u12\""), 1, 8, "\\u needs four hexadecimal digits"},
        /* the newline of an unescaped string is no line of the text */
        {SLICE("[\"\\n\\n\\n\",\r\n  x]"), 2, 3, "a value is expected"},
        {SLICE("[\n1,\n\n2,\n]"), 5, 1, "a value is expected"},
        {SLICE("[1,\xef\xbb\xbf 2]"), 1, 4, "a value is expected"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scanned s = scan_of(rows[i].text);
        bool ok = json_scan_skip(&s.scan) && json_scan_finish(&s.scan);
        size_t line, column;

        json_scan_position(&s.scan, &line, &column);
        cr_expect_not(ok, "row %zu", i);
        cr_expect_eq(line, rows[i].line, "row %zu: line %zu", i, line);
        cr_expect_eq(column, rows[i].column, "row %zu: column %zu", i, column);
        cr_expect_str_eq(s.scan.error, rows[i].error, "row %zu: %s", i, s.scan.error);
        free(s.text);
    }
}

/* No prefix of a document is one. */
Test(json_scan, every_cut_is_noticed)
{
    static const char text[] = "{\"a\":[1,-2.5e+3,\"\\u00e9\\n\xe4\xba\xac\"],\"b\":{\"c\":true},"
                               "\"d\":false,\"e\":null}";

    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        cr_expect_not(is_json((struct slice){text, n}), "%zu", n);
    }
    cr_expect(is_json(SLICE(text)));
}

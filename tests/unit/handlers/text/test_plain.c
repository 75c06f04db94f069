#include "handlers/text/plain.h"

#include <criterion/criterion.h>

Test(plain, numbers)
{
    static const struct {
        const char *text;
        uint64_t max;
        bool is_number;
        uint64_t value;
    } rows[] = {
        {"0", 0, true, 0},
        {"007", 7, true, 7},
        {"366", 366, true, 366},
        {"367", 366, false, 0},
        {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, false, 0},
        {"99999999999999999999999", UINT64_MAX, false, 0},
        {"", 9, false, 0},
        {"-1", 9, false, 0},
        {"+1", 9, false, 0},
        {" 1", 9, false, 0},
        {"1a", 9, false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t value = 77;
        bool is_number = text_number(slice_of(rows[i].text), rows[i].max, &value);
        cr_expect_eq(is_number, rows[i].is_number, "%s", rows[i].text);
        cr_expect_eq(value, is_number ? rows[i].value : 77, "%s", rows[i].text);
    }
}

/* All bytes, against the standard's own list. */
Test(plain, tokens)
{
    for (unsigned c = 0; c < 256; c++) {
        char byte = (char)c;
        bool is = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c != 0 && c < 0x80 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
        cr_expect_eq(text_is_token((struct slice){&byte, 1}), is, "%u", c);
    }
    cr_expect_not(text_is_token(SLICE("")));
    cr_expect_not(text_is_token(SLICE("a b")));
}

Test(plain, what_can_be_printed)
{
    for (unsigned c = 0; c < 256; c++) {
        char byte = (char)c;
        cr_expect_eq(text_is_graphic((struct slice){&byte, 1}), c > 0x20 && c < 0x7f, "%u", c);
    }
    cr_expect_not(text_is_graphic(SLICE("")));
}

Test(plain, media_types)
{
    cr_expect(text_is_media_type(SLICE("text/csv"), "text/csv"));
    cr_expect(text_is_media_type(SLICE("Text/CSV;charset=utf-8"), "text/csv"));
    cr_expect(text_is_media_type(SLICE("text/csv ; q=1"), "text/csv"));
    cr_expect_not(text_is_media_type(SLICE("text/csv2"), "text/csv"));
    cr_expect_not(text_is_media_type(SLICE("text"), "text/csv"));
    cr_expect_not(text_is_media_type(SLICE(""), "text/csv"));
}

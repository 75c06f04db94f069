#include <criterion/criterion.h>

#include "handlers/text/utf8.h"

/* Success scenarios */

Test(utf8, what_is_put_is_valid_for_every_scalar_value)
{
    char text[UTF8_MAX];

    for (uint32_t code = 0; code < 0x110000; code++) {
        size_t n;

        if (code >= 0xd800 && code < 0xe000) {
            continue;
        }
        n = utf8_put(text, code);
        if (utf8_sequence(text, text + n) != n) {
            cr_assert_fail("U+%04X", code);
        }
    }
}

Test(utf8, text_of_several_scripts_is_valid)
{
    cr_expect(utf8_valid(SLICE("")));
    cr_expect(utf8_valid((struct slice){NULL, 0}));
    cr_expect(utf8_valid(SLICE("plain")));
    cr_expect(utf8_valid(SLICE("stra\xc3\x9f"
                               "e \xe4\xba\xac \xf0\x9f\x98\x80")));
}

/* Failure scenarios */

Test(utf8, ill_formed_sequences_are_refused)
{
    static const char *const texts[] = {
        "\x80",             /* continuation alone */
        "\xbf",             /* */
        "\xc0\x80",         /* overlong */
        "\xc1\xbf",         /* */
        "\xe0\x9f\xbf",     /* */
        "\xf0\x8f\xbf\xbf", /* */
        "\xed\xa0\x80",     /* surrogates */
        "\xed\xbf\xbf",     /* */
        "\xf4\x90\x80\x80", /* beyond U+10FFFF */
        "\xf5\x80\x80\x80", /* */
        "\xff",             /* */
        "\xc3",             /* cut short */
        "\xe4\xba",         /* */
        "\xf0\x9f\x98",     /* */
        "\xc3(",            /* continued by something else */
        "\xe4\xba(",        /* */
        "\xf0\x9f(\x80",    /* */
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_expect_not(utf8_valid(slice_of(texts[i])), "row %zu", i);
    }
}

/* Every sequence of two and of three bytes, against the definition: put and compare. */
Test(utf8, agrees_with_the_definition_on_all_short_sequences)
{
    static bool valid[1 << 24];
    char text[UTF8_MAX];

    for (uint32_t code = 0x80; code < 0x10000; code++) {
        uint32_t key = 0;

        if (code >= 0xd800 && code < 0xe000) {
            continue;
        }
        for (size_t i = 0, n = utf8_put(text, code); i < n; i++) {
            key = key << 8 | (unsigned char)text[i];
        }
        valid[key] = true;
    }
    for (uint32_t key = 0x8000; key < 1 << 24; key++) {
        size_t n = key < 0x10000 ? 2 : 3;

        for (size_t i = 0; i < n; i++) {
            text[i] = (char)(key >> 8 * (n - 1 - i));
        }
        if ((unsigned char)text[0] < 0x80) {
            continue;
        }
        if ((utf8_sequence(text, text + n) == n) != valid[key]) {
            cr_assert_fail("%06x", key);
        }
    }
}

Test(utf8, what_fits_is_whole_characters)
{
    static const struct {
        const char *text;
        size_t most, fits;
    } cases[] = {{"", 4, 0}, {"abc", 4, 3}, {"abcd", 4, 4}, {"abcde", 4, 4}, {"abc\xC3\xA9", 4, 3},
        {"ab\xC3\xA9", 4, 4}, {"\xE2\x82\xAC\xE2\x82\xAC", 5, 3}, {"\xE2\x82\xAC", 2, 0},
        {"\xF0\x9F\x98\x80", 3, 0}, {"\xF0\x9F\x98\x80", 4, 4}, {"a", 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(utf8_fit(slice_of(cases[i].text), cases[i].most), cases[i].fits, "%zu", i);
    }
}

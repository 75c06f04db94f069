#include "handlers/dimension/language.h"

#include <criterion/criterion.h>

static void check(const char *text, const char *expected)
{
    char room[LANGUAGE_MAX];
    struct slice language;
    bool is = language_read(slice_of(text), room, &language);
    cr_expect(is == (expected != NULL), "\"%s\"", text);
    cr_expect(!is || slice_equal(language, slice_of(expected)), "\"%s\"", text);
}

Test(language, the_first_one)
{
    check("de", "de");
    check("de-AT", "de");
    check("EN_us", "en");
    check(" fr-CH, fr;q=0.9, en;q=0.8", "fr");
    check("gsw-CH", "gsw");
    check("en;q=0.5", "en");
}

Test(language, none)
{
    static const char *const rows[] = {
        "", "*", "e", "engl", "e1", "-de", "  ", "de/at", "d\xc3\xa9"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(rows[i], NULL);
    }
}

Test(language, countries)
{
    char room[COUNTRY_SIZE];
    struct slice country;
    cr_assert(country_read(SLICE("de"), room, &country));
    cr_expect(slice_equal(country, SLICE("DE")));
    cr_assert(country_read(SLICE("Us"), room, &country));
    cr_expect(slice_equal(country, SLICE("US")));
    static const char *const rows[] = {"", "D", "DEU", "T1", "d ", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_not(country_read(slice_of(rows[i]), room, &country), "%s", rows[i]);
    }
}

#include "handlers/text/name.h"

#include <criterion/criterion.h>

TestSuite(name, .timeout = 60);

Test(name, letters_digits_and_three_signs)
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

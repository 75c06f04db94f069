#include "service/log/escape.h"

#include <criterion/criterion.h>

TestSuite(escape, .timeout = 60);

/* What is escaped is tested with the log: test_log.c. */

Test(escape, strings_are_cut_between_characters)
{
    char text[12];

    escape_string("12345678901", text, sizeof(text));
    cr_expect_str_eq(text, "12345678901", "fits exactly");
    escape_string("123456789012", text, sizeof(text));
    cr_expect_str_eq(text, "12345678...");
    escape_string("1234567\xc3\xa9 and more", text, sizeof(text));
    cr_expect_str_eq(text, "1234567...");
    escape_string("", text, sizeof(text));
    cr_expect_str_eq(text, "");
    escape_string("\x01\x01\x01\x01", text, 4);
    cr_expect_str_eq(text, "...");
}

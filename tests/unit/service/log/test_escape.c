#include "service/log/escape.h"

#include <criterion/criterion.h>

TestSuite(escape, .timeout = 60);

/* What is escaped is tested with the log: test_log.c. */

Test(escape, for_a_terminal)
{
    char text[] = "a\x1b[\xc2\x9b\xe2\x80\xae\xc3\xa9\x7f\xff\xe2\x80", printed[sizeof(text)] = "";

    FILE *out = fmemopen(printed, sizeof(printed), "w");
    cr_assert(out != NULL);
    escape_print(text, out);
    cr_assert_eq(fclose(out), 0);
    cr_expect_str_eq(printed, "a?[??\xc3\xa9?\xff\xe2\x80");
    escape_in_place(text);
    cr_expect_str_eq(text, "a?[?????\xc3\xa9?\xff\xe2\x80");
    cr_expect_eq(escape_control((struct slice){NULL, 0}), 0);
}

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

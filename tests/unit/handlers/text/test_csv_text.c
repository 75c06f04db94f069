#include "handlers/text/csv_text.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_cell(const char *text, const char *cell)
{
    struct buffer out;
    buffer_init(&out);
    csv_put_text(&out, text, strlen(text));
    cr_expect_eq(out.n, strlen(cell), "%s", text);
    cr_expect(out.n == 0 || memcmp(out.p, cell, out.n) == 0, "%s: not %s but %.*s", text, cell,
        (int)out.n, out.p);
    buffer_release(&out);
}

Test(csv_text, plain_texts_stay_as_they_are)
{
    expect_cell("", "");
    expect_cell("/a/b", "/a/b");
    expect_cell("a=b", "a=b");
    expect_cell("caf\xc3\xa9", "caf\xc3\xa9");
}

Test(csv_text, quotes_stand_around_what_would_end_the_cell)
{
    expect_cell("a,b", "\"a,b\"");
    expect_cell("say \"a\"", "\"say \"\"a\"\"\"");
    expect_cell("a\nb", "\"a\nb\"");
    expect_cell(" a", "\" a\"");
    expect_cell("a ", "\"a \"");
}

/* A spreadsheet of a country that writes 1,5 for a half divides lines at semicolons. */
Test(csv_text, quotes_stand_around_what_ends_a_cell_elsewhere)
{
    expect_cell("u;=1+1", "\"u;=1+1\"");
    expect_cell("u\t=1+1", "\"u\t=1+1\"");
}

Test(csv_text, no_spreadsheet_calculates_a_text)
{
    expect_cell("=1+1", "\"'=1+1\"");
    expect_cell("+1", "\"'+1\"");
    expect_cell("-1", "\"'-1\"");
    expect_cell("@SUM(A1)", "\"'@SUM(A1)\"");
    expect_cell("\ta", "\"'\ta\"");
    expect_cell("\xef\xbc\x9d"
                "1",
        "\"'\xef\xbc\x9d"
        "1\"");
    expect_cell("=\"a\"", "\"'=\"\"a\"\"\"");
}

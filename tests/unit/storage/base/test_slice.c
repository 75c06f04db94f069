#include "storage/base/slice.h"

#include <criterion/criterion.h>

Test(slice, begins)
{
    cr_expect(slice_begins(SLICE("prop:x"), SLICE("prop:")));
    cr_expect(slice_begins(SLICE("prop:"), SLICE("prop:")));
    cr_expect(slice_begins((struct slice){NULL, 0}, SLICE("")));
    cr_expect_not(slice_begins(SLICE("prop"), SLICE("prop:")));
    cr_expect_not(slice_begins(SLICE("Prop:x"), SLICE("prop:")));
    cr_expect_not(slice_begins((struct slice){NULL, 0}, SLICE("a")));
}

Test(slice, until)
{
    struct slice rest = SLICE("a,,b");
    cr_expect(slice_equal(slice_until(&rest, ','), SLICE("a")));
    cr_expect(slice_equal(slice_until(&rest, ','), SLICE("")));
    cr_expect(slice_equal(rest, SLICE("b")));
    cr_expect(slice_equal(slice_until(&rest, ','), SLICE("b")));
    cr_expect_eq(rest.n, 0);
    cr_expect_eq(slice_until(&rest, ',').n, 0);
    struct slice nothing = {NULL, 0};
    cr_expect_eq(slice_until(&nothing, ',').n, 0);
}

Test(slice, take_until)
{
    struct slice rest = SLICE("a,,b");
    struct slice head = SLICE("x");
    cr_assert(slice_take_until(&rest, ',', &head) && slice_equal(head, SLICE("a")));
    cr_assert(slice_take_until(&rest, ',', &head) && slice_equal(head, SLICE("")));
    cr_expect_not(slice_take_until(&rest, ',', &head));
    cr_expect(slice_equal(rest, SLICE("b")) && slice_equal(head, SLICE("")), "nothing is cut");
    struct slice nothing = {NULL, 0};
    cr_expect_not(slice_take_until(&nothing, ',', &head));
}

Test(slice, trim)
{
    static const struct {
        const char *text, *blanks, *inside;
    } rows[] = {
        {" a b\t", " \t", "a b"},
        {"\ta ", " ", "\ta"},
        {"a", " ", "a"},
        {"  ", " ", ""},
        {"", " ", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice inside = slice_trim(slice_of(rows[i].text), rows[i].blanks);
        cr_expect(slice_equal(inside, slice_of(rows[i].inside)), "\"%s\"", rows[i].text);
    }
    cr_expect_eq(slice_trim(SLICE("\0a\0"), " ").n, 3, "a NUL is no blank");
}

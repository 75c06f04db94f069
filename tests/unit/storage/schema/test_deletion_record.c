#include "storage/schema/deletion_record.h"

#include <criterion/criterion.h>
#include <string.h>

/* What is written down of a deletion, and read again. */
TestSuite(deletion_record, .timeout = 60);

static void expect_field(const struct deletion_target *target, const char *text)
{
    struct key field;
    struct deletion_target is;
    deletion_field_print(&field, target);
    cr_assert(slice_equal((struct slice){field.p, field.n}, slice_of(text)), "%s", text);
    cr_assert(deletion_field_parse((struct slice){field.p, field.n}, &is));
    cr_expect(slice_equal(is.site, target->site) && slice_equal(is.page, target->page));
    cr_expect_eq(is.is_prefix, target->is_prefix);
}

Test(deletion_record, a_field_says_what_is_deleted)
{
    expect_field(&(struct deletion_target){SLICE("blog"), {NULL, 0}, false}, "blog");
    expect_field(&(struct deletion_target){SLICE("blog"), SLICE("/a"), false}, "blog\n=/a");
    expect_field(&(struct deletion_target){SLICE("blog"), SLICE("=^"), true}, "blog\n^=^");
}

Test(deletion_record, foreign_fields_are_refused)
{
    static const char *const texts[] = {"", "\n=/a", "blog\n", "blog\n=", "blog\n/a",
        "a23456789012345678901234567890123456789012345678901234567890123456789"};
    struct deletion_target target;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_expect_not(deletion_field_parse(slice_of(texts[i]), &target), "%s", texts[i]);
    }
}

Test(deletion_record, a_value_is_read_as_it_was_written)
{
    struct deletion_record record = {"0123456789abcdef", 250000, 1773144000123};
    struct deletion_record is;
    char text[DELETION_VALUE];
    deletion_record_print(&record, text);
    cr_assert(deletion_record_parse(slice_of(text), &is));
    cr_expect(strcmp(is.id, record.id) == 0 && is.done == 250000 && is.until_ms == 1773144000123);
    cr_expect(!deletion_is_over(&is, 1773144000122) && deletion_is_over(&is, 1773144000123));
    is.until_ms = 0;
    cr_expect_not(deletion_is_over(&is, INT64_MAX), "not known yet");
}

Test(deletion_record, foreign_values_are_refused)
{
    static const char *const texts[] = {"", "0123456789abcdef", "0123456789abcdef 1",
        "0123456789abcdef 1 ", "0123456789abcdef x 1", "0123456789abcdef 1000001 0",
        "0123456789abcdef -1 0", "0123456789abcdef 0 -1", "0123456789abcde  0 0x",
        "0123456789abcdef 0 0 00000000000000000000000000000000000000000000000000"};
    struct deletion_record record;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_expect_not(deletion_record_parse(slice_of(texts[i]), &record), "%s", texts[i]);
    }
}

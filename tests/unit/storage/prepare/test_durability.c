#include "storage/prepare/durability.h"

#include <criterion/criterion.h>

TestSuite(durability, .timeout = 60);

static struct durability of(bool has_aof, const char *fsync)
{
    struct reply items[2] = {{.type = REPLY_TEXT, .text = SLICE("appendfsync")},
        {.type = REPLY_TEXT, .text = slice_of(fsync)}};
    struct reply config = {.type = REPLY_ARRAY, .items = items, .n = 2};
    return durability_of(has_aof, &config);
}

Test(durability, each_setting)
{
    cr_expect_eq(of(true, "always").go_back_ms, 0);
    cr_expect_null(of(true, "always").warning);
    cr_expect_eq(of(true, "everysec").go_back_ms, 2000);
    cr_expect_null(of(true, "everysec").warning);
    cr_expect_eq(of(true, "no").go_back_ms, 2000);
    cr_expect_not_null(strstr(of(true, "no").warning, "appendfsync is no"));
}

Test(durability, without_append_only_file_the_setting_says_nothing)
{
    static const char *const settings[] = {"always", "everysec", "no"};
    for (size_t i = 0; i < 3; i++) {
        cr_expect_eq(of(false, settings[i]).go_back_ms, 2000);
        cr_expect_not_null(strstr(of(false, settings[i]).warning, "no append-only file"));
    }
}

Test(durability, what_may_not_be_read_is_taken_for_two_seconds)
{
    struct reply none[] = {{.type = REPLY_ERROR, .text = SLICE("NOPERM no permissions")},
        {.type = REPLY_ARRAY}, {.type = REPLY_NIL}};
    for (size_t i = 0; i < 3; i++) {
        struct durability is = durability_of(true, &none[i]);
        cr_expect_eq(is.go_back_ms, 2000);
        cr_expect_not_null(strstr(is.warning, "not permitted"));
    }
}

#include "storage/redis/reply.h"

#include <criterion/criterion.h>

static struct reply text_of(enum reply_type type, const char *text)
{
    return (struct reply){.type = type, .text = slice_of(text)};
}

Test(reply, an_error_begins_with_its_code)
{
    struct reply reply = text_of(REPLY_ERROR, "OOM command not allowed");
    cr_expect(reply_is_error(&reply, "OOM"));
    cr_expect_not(reply_is_error(&reply, "OO"));
    cr_expect_not(reply_is_error(&reply, "OOM command not allowed, and more"));
    reply = text_of(REPLY_ERROR, "NOSCRIPT");
    cr_expect(reply_is_error(&reply, "NOSCRIPT"));
    reply = text_of(REPLY_TEXT, "OOM");
    cr_expect_not(reply_is_error(&reply, "OOM"));
}

Test(reply, integers)
{
    struct reply reply = {.type = REPLY_INTEGER, .integer = -7};
    cr_expect_eq(reply_integer(&reply, 1), -7);
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {{"42", 42}, {"999999999999999999", 999999999999999999}, {"", 1}, {"-1", 1},
        {"4x", 1}, {"1000000000000000000", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        reply = text_of(REPLY_TEXT, rows[i].text);
        cr_expect_eq(reply_integer(&reply, 1), rows[i].value, "%s", rows[i].text);
    }
    reply = text_of(REPLY_STATUS, "42");
    cr_expect_eq(reply_integer(&reply, 1), 1);
}

Test(reply, a_line_of_info)
{
    struct reply reply =
        text_of(REPLY_TEXT, "# Server\r\nrole:x\r\nold_role:y\r\nempty:\r\nlast:1");
    cr_expect(slice_equal(reply_field(&reply, "role:"), SLICE("x")));
    cr_expect(slice_equal(reply_field(&reply, "last:"), SLICE("1")));
    cr_expect(reply_field(&reply, "empty:").n == 0 && reply_field(&reply, "empty:").p != NULL);
    cr_expect_null(reply_field(&reply, "ole:").p);
    reply = text_of(REPLY_ERROR, "role:x");
    cr_expect_null(reply_field(&reply, "role:").p);
}

Test(reply, a_scan)
{
    char cursor[REPLY_CURSOR] = "7";
    struct reply parts[] = {text_of(REPLY_TEXT, "18446744073709551615"), {.type = REPLY_ARRAY}};
    struct reply reply = {.type = REPLY_ARRAY, .items = parts, .n = 2};
    cr_expect(reply_scan(&reply, cursor) == &parts[1]);
    cr_expect_str_eq(cursor, "18446744073709551615");
    reply.n = 1;
    cr_expect_null(reply_scan(&reply, cursor));
    reply.n = 2;
    parts[1].type = REPLY_NIL;
    cr_expect_null(reply_scan(&reply, cursor));
    parts[1].type = REPLY_ARRAY;
    parts[0] = text_of(REPLY_TEXT, "111111111111111111111111");
    cr_expect_null(reply_scan(&reply, cursor), "it is too long");
    parts[0] = (struct reply){.type = REPLY_INTEGER};
    cr_expect_null(reply_scan(&reply, cursor));
    cr_expect_str_eq(cursor, "18446744073709551615", "it stays");
}

Test(reply, the_time)
{
    struct reply parts[] = {text_of(REPLY_TEXT, "1700000000"), text_of(REPLY_TEXT, "000012")};
    struct reply reply = {.type = REPLY_ARRAY, .items = parts, .n = 2};
    cr_expect_eq(reply_time_us(&reply), 1700000000000012);
    reply.n = 1;
    cr_expect_eq(reply_time_us(&reply), 0);
}

#include "handlers/reply/reply.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(reply, .timeout = 60);

/* The answer with @text behind the members of @rest is @expected. */
static void check_with(const char *rest, const char *text, const char *expected)
{
    struct http_response response = {0};
    struct buffer value;
    buffer_init(&value);
    buffer_text(&value, text);
    reply_json_with(&response, json_loads(rest, 0, NULL), "series", &value);
    cr_assert_eq(response.status, 200);
    cr_expect_str_eq(response.content_type, "application/json");
    cr_expect(response.body_n == strlen(expected) &&
                  memcmp(response.body, expected, response.body_n) == 0,
        "[%.*s]", (int)response.body_n, response.body);
    cr_expect_null(value.p, "the text was taken over");
    free(response.body);
}

Test(reply, text_stands_behind_the_members)
{
    check_with(
        "{\"site\":\"a}\"}", "[1,{\"pv\":2}]", "{\"site\":\"a}\",\"series\":[1,{\"pv\":2}]}");
    check_with("{\"a\":1,\"b\":null}", "[]", "{\"a\":1,\"b\":null,\"series\":[]}");
}

Test(reply, text_that_is_not_whole_is_a_503)
{
    struct http_response response = {0};
    struct buffer value;
    buffer_init(&value);
    buffer_text(&value, "[1,2");
    value.failed = true;
    reply_json_with(&response, json_pack("{s:i}", "a", 1), "series", &value);
    cr_expect_eq(response.status, 503);
    free(response.body);
}

Test(reply, without_the_members_it_is_a_503)
{
    struct http_response response = {0};
    struct buffer value;
    buffer_init(&value);
    buffer_text(&value, "[]");
    reply_json_with(&response, NULL, "series", &value);
    cr_expect_eq(response.status, 503);
    free(response.body);
}

/* A number is the same in a tree and in a text. */
Test(reply, numbers_that_are_not_whole)
{
    static const double values[] = {
        0.0, 1.0, 0.5, 1.0 / 3, 2e-7, 123456789.123, 1e300, 5e-324, 903.7777777777};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct http_response response = {0};
        struct buffer text;
        buffer_init(&text);
        buffer_text(&text, "{\"v\":");
        reply_put_real(&text, values[i]);
        buffer_text(&text, "}");
        reply_json(&response, 200, json_pack("{s:f}", "v", values[i]));
        cr_expect(response.body_n == text.n && memcmp(response.body, text.p, text.n) == 0,
            "[%.*s] [%.*s]", (int)response.body_n, response.body, (int)text.n, text.p);
        free(response.body);
        buffer_release(&text);
    }
}

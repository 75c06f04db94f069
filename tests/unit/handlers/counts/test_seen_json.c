#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/counts/seen_json.h"

static enum seen_json_result decode(
    const char *text, struct seen_body *body, struct seen_json_fault *fault, char **ret)
{
    *ret = strdup(text);
    return seen_json_decode(*ret, strlen(text), body, fault);
}

Test(seen_json, all_members)
{
    struct seen_body body;
    struct seen_json_fault fault;
    char *text;
    cr_assert_eq(
        decode(" {\"pages\":[\"/a\",\"/\\u00e4\" , \"/a\"],\"site\":\"s\",\"user\":\"u\\/1\"} ",
            &body, &fault, &text),
        SEEN_JSON_OK);
    cr_expect(slice_equal(body.user, SLICE("u/1")) && slice_equal(body.site, SLICE("s")));
    cr_assert_eq(body.n, 3);
    cr_expect(slice_equal(body.pages[0], SLICE("/a")));
    cr_expect(slice_equal(body.pages[1], SLICE("/\xc3\xa4")));
    cr_expect(slice_equal(body.pages[2], SLICE("/a")));
    seen_body_release(&body);
    cr_expect(body.pages == NULL && body.n == 0);
    free(text);
}

Test(seen_json, a_user_may_be_an_integer_of_any_size)
{
    static const struct {
        const char *text, *user;
    } rows[] = {{"42", "42"}, {"-0", "0"}, {"-7", "-7"},
        {"123456789012345678901234567890", "123456789012345678901234567890"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[128];
        char *text;
        struct seen_body body;
        struct seen_json_fault fault;
        (void)snprintf(json, sizeof(json), "{\"user\":%s,\"pages\":[\"/\"]}", rows[i].text);
        cr_expect_eq(decode(json, &body, &fault, &text), SEEN_JSON_OK, "%s", json);
        cr_expect(slice_equal(body.user, slice_of(rows[i].user)), "%s", json);
        cr_expect_null(body.site.p);
        seen_body_release(&body);
        free(text);
    }
}

Test(seen_json, the_first_fault_is_told)
{
    static const struct {
        const char *text, *pointer;
    } rows[] = {
        {"{}", "/user"},
        {"7", ""},
        {"[]", ""},
        {"{\"user\":\"u\"}", "/pages"},
        {"{\"user\":\"u\",\"pages\":[]}", "/pages"},
        {"{\"user\":\"u\",\"pages\":{}}", "/pages"},
        {"{\"user\":\"u\",\"pages\":[\"/a\",3]}", "/pages/1"},
        {"{\"user\":\"u\",\"pages\":[\"/a\",[]]}", "/pages/1"},
        {"{\"user\":\"u\",\"pages\":[\"/a\",\"\"]}", "/pages/1"},
        {"{\"user\":\"u\",\"pages\":[\"\\u0000\"]}", "/pages/0"},
        {"{\"user\":\"u\",\"pages\":[\"\\ud800\"]}", "/pages/0"},
        {"{\"user\":\"u\",\"pages\":[\"\xff\"]}", "/pages/0"},
        {"{\"pages\":[\"/a\"]}", "/user"},
        {"{\"user\":null,\"pages\":[\"/a\"]}", "/user"},
        {"{\"user\":1.5,\"pages\":[\"/a\"]}", "/user"},
        {"{\"user\":\"\\u0000\",\"pages\":[\"/a\"]}", "/user"},
        {"{\"user\":\"u\",\"user\":\"u\",\"pages\":[\"/a\"]}", "/user"},
        {"{\"user\":\"u\",\"pages\":[\"/a\"],\"pages\":[\"/b\"]}", "/pages"},
        {"{\"user\":\"u\",\"pages\":[\"/a\"],\"site\":7}", "/site"},
        {"{\"user\":\"u\",\"pages\":[\"/a\"],\"site\":\"no such\"}", "/site"},
        {"{\"user\":\"u\",\"pages\":[\"/a\"],\"page\":\"/b\"}", ""},
        {"{\"site\":7,\"user\":1.5,\"pages\":3}", "/site"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct seen_body body;
        struct seen_json_fault fault;
        char *text;
        cr_expect_eq(
            decode(rows[i].text, &body, &fault, &text), SEEN_JSON_UNACCEPTABLE, "%s", rows[i].text);
        cr_expect_str_eq(fault.pointer, rows[i].pointer, "%s", rows[i].text);
        cr_expect_not_null(fault.detail);
        seen_body_release(&body);
        free(text);
    }
}

Test(seen_json, what_is_no_json_has_a_place)
{
    static const struct {
        const char *text;
        size_t line, column;
    } rows[] = {{"", 1, 1}, {"{\"user\":\"u\",\n\"pages\":[\"/a\"", 2, 14},
        {"{\"pages\":[3,]}", 1, 13}, {"{\"user\":\"u\",\"pages\":[\"/a\"]} x", 1, 29},
        {"{\"user\":tru}", 1, 9}, {"{\"page\":\"/a\",}", 1, 14}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct seen_body body;
        struct seen_json_fault fault;
        char *text;
        cr_expect_eq(
            decode(rows[i].text, &body, &fault, &text), SEEN_JSON_MALFORMED, "%s", rows[i].text);
        cr_expect_eq(fault.line, rows[i].line, "%s: line %zu", rows[i].text, fault.line);
        cr_expect_eq(fault.column, rows[i].column, "%s: column %zu", rows[i].text, fault.column);
        cr_expect_not_null(fault.detail);
        seen_body_release(&body);
        free(text);
    }
}

/* A body of @n pages, which the caller owns. */
static char *many(size_t n)
{
    char *text = malloc(n * 8 + 64);
    size_t at = (size_t)sprintf(text, "{\"user\":\"u\",\"pages\":[");
    for (size_t i = 0; i < n; i++) {
        at += (size_t)sprintf(text + at, "%s\"/%zu\"", i == 0 ? "" : ",", i);
    }
    (void)sprintf(text + at, "]}");
    return text;
}

Test(seen_json, a_thousand_pages_and_not_one_more)
{
    struct seen_body body;
    struct seen_json_fault fault;
    char *text = many(SEEN_PAGES_MAX);
    cr_assert_eq(seen_json_decode(text, strlen(text), &body, &fault), SEEN_JSON_OK);
    cr_expect_eq(body.n, 1000);
    cr_expect(slice_equal(body.pages[999], SLICE("/999")));
    seen_body_release(&body);
    free(text);
    text = many(SEEN_PAGES_MAX + 1);
    cr_assert_eq(seen_json_decode(text, strlen(text), &body, &fault), SEEN_JSON_UNACCEPTABLE);
    cr_expect_str_eq(fault.pointer, "/pages");
    seen_body_release(&body);
    free(text);
}

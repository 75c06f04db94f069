#include <criterion/criterion.h>

#include <string.h>

#include "handlers/grafana/names.h"

/* @value as JSON; @expected the names as an array in JSON. */
static void check(const char *value, const char *expected)
{
    json_t *asked = value == NULL ? NULL : json_loads(value, JSON_DECODE_ANY, NULL);
    cr_assert(value == NULL || asked != NULL, "%s", value);
    json_t *names = grafana_names(asked);
    json_t *list = json_array(), *one;
    const char *name;
    size_t n;
    json_object_keylen_foreach(names, name, n, one)
    {
        json_array_append_new(list, json_stringn(name, n));
    }
    struct slice first = grafana_first_name(names);
    json_t *front = json_array_get(list, 0);
    cr_expect_eq(first.n, json_string_length(front));
    cr_expect(first.n == 0 || memcmp(first.p, json_string_value(front), first.n) == 0);
    char *text = json_dumps(list, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(list);
    cr_expect_str_eq(
        text, expected, "%s: %s, not %s", value == NULL ? "nothing" : value, text, expected);
    free(text);
    json_decref(names);
    json_decref(asked);
}

Test(grafana_names, one_name)
{
    check("\"shop\"", "[\"shop\"]");
    check("\"example\\\\.com\"", "[\"example.com\"]");
    check("\"\\\\/a\\\\/b\"", "[\"/a/b\"]");
    check("\"/a/b\"", "[\"/a/b\"]");
    check("\"a\\\\\\\\b\"", "[\"a\\\\b\"]");       /* \\ is one backslash */
    check("\"a\\\\d\"", "[\"a\\\\d\"]");           /* d is not escaped by Grafana */
    check("\"\\\\(a\\\\|b\\\\)\"", "[\"(a|b)\"]"); /* a page of that name */
    check("\"a\\\\\"", "[\"a\\\\\"]");             /* a backslash at the end */
    check("\"\\u00e4\\u4e2d\"", "[\"\\u00E4\\u4E2D\"]");
    check("42", "[\"42\"]");
}

Test(grafana_names, several)
{
    check("\"(\\\\/a|\\\\/b\\\\.c)\"", "[\"/a\",\"/b.c\"]");
    check("\"(a|b|a)\"", "[\"a\",\"b\"]");
    check("\"(\\\\/a\\\\|b|c)\"", "[\"/a|b\",\"c\"]");
    check("[\"/a\",\"/b\",\"/a\"]", "[\"/a\",\"/b\"]");
    check("[\"\\\\/a\",7,null,{}]", "[\"/a\",\"7\"]");
    check("\"(a)\"", "[\"(a)\"]");
    check("\"(a|b)c\"", "[\"(a|b)c\"]");
    check("\"(a|(b))\"", "[\"(a|(b))\"]");
    check("\"(a|b\\\\)\"", "[\"(a|b)\"]"); /* its last parenthesis is a name's */
}

Test(grafana_names, all_is_none)
{
    check(NULL, "[]");
    check("null", "[]");
    check("\"\"", "[]");
    check("\"$__all\"", "[]");
    check("\"\\\\$__all\"", "[]");
    check("\"All\"", "[]");
    check("[\"*\"]", "[]");
    check("{\"value\":1}", "[]");
    check("true", "[]");
}

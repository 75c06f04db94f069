#include "handlers/ingest/plausible_event.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* What @body says, as "page domain..", behind "name!" for a named event and "!" for an engagement;
 * or the fault. */
static void check(const char *body, const char *expected)
{
    struct plausible_event event;
    struct plausible_fault fault;
    char text[4096];
    size_t n = 0;
    switch (plausible_decode(slice_of(body), &event, &fault)) {
    case PLAUSIBLE_OK:
        cr_assert_eq(event.kind == PLAUSIBLE_NAMED, event.name.n > 0);
        cr_assert(event.name.n == 0 || event.name.p[0] == '\1');
        n = (size_t)snprintf(text, sizeof(text), "%.*s%s%.*s",
            event.name.n > 0 ? (int)event.name.n - 1 : 0, event.name.p + 1,
            event.kind == PLAUSIBLE_VIEW ? "" : "!", (int)event.page.n, event.page.p);
        for (size_t i = 0; i < event.n_domains; i++) {
            n += (size_t)snprintf(
                text + n, sizeof(text) - n, " %.*s", (int)event.domains[i].n, event.domains[i].p);
        }
        break;
    case PLAUSIBLE_FAULT:
        (void)snprintf(text, sizeof(text), "fault %s", fault.member != NULL ? fault.member : "-");
        cr_expect_not_null(fault.detail);
        cr_expect(event.bytes == NULL && event.n_domains == 0);
        break;
    case PLAUSIBLE_NOMEM:
        cr_assert_fail("no memory");
    }
    cr_expect_str_eq(text, expected, "%s: %s, not %s", body, text, expected);
    plausible_release(&event);
}

Test(plausible_event, what_is_wrong_with_the_body_is_said)
{
    static const struct {
        const char *body, *word;
    } cases[] = {
        {"", "object"},
        {"[1]", "object"},
        {"null", "JSON"}, /* to jansson a text is an array or an object */
        {"{", "JSON"},
        {"{\"n\":\"pageview\",\"u\":\"https://e/\\u0000\",\"d\":\"e\"}", "u0000"},
        {"{\"n\":\"pageview\",\"u\":\"https://e/\\ud800\",\"d\":\"e\"}", "surrogate"},
        {"{\"n\":\"pageview\",\"u\":\"https://e/\xff\",\"d\":\"e\"}", "UTF-8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plausible_event event;
        struct plausible_fault fault;
        cr_assert_eq(plausible_decode(slice_of(cases[i].body), &event, &fault), PLAUSIBLE_FAULT);
        cr_expect_null(fault.member);
        cr_expect(
            strstr(fault.detail, cases[i].word) != NULL, "%s: %s", cases[i].body, fault.detail);
    }
}

#define VIEW(url) "{\"n\":\"pageview\",\"u\":\"" url "\",\"d\":\"e\"}"

Test(plausible_event, pages_are_paths)
{
    check(VIEW("https://e.org/a/b?c=d#f"), "/a/b e");
    check(VIEW("https://e.org"), "/ e");
    check(VIEW("https://e.org?x"), "/ e");
    check(VIEW("https://e.org#x/y"), "/ e");
    check(VIEW("http://u:p@e.org:8080//a/"), "//a/ e");
    check(VIEW("app://home/x%20y"), "/x%20y e");
    check(VIEW("file:///x"), "/x e");
    check(VIEW("https://e.org/\\u00e4"), "/\u00e4 e");
    check("{\"n\":\"pageview\",\"u\":\"https://e/"
          "a\",\"d\":\"e\",\"x\":[123456789012345678901234567890]}",
        "/a e");
}

Test(plausible_event, fragments_belong_to_the_page_where_it_is_said)
{
#define HASH(url, mode) "{\"n\":\"pageview\",\"u\":\"" url "\",\"d\":\"e\",\"h\":" mode "}"
    check(HASH("https://e.org/a?b#/c?d", "1"), "/a#/c?d e");
    check(HASH("https://e.org#c", "true"), "/#c e");
    check(HASH("https://e.org/a", "1"), "/a e");
    check(HASH("https://e.org/a#c", "0"), "/a e");
    check(HASH("https://e.org/a#c", "null"), "/a e");
}

Test(plausible_event, long_and_short_names)
{
    check(
        "{\"name\":\"pageview\",\"url\":\"https://x/l\",\"domain\":\"l\",\"p\":{\"a\":1}}", "/l l");
    check("{\"name\":\"pageview\",\"n\":\"x\",\"url\":\"https://x/l\",\"u\":\"https://x/"
          "s\",\"domain\":"
          "\"l\",\"d\":\"s\"}",
        "/l l");
    check("{\"n\":\"Signup\",\"u\":\"https://x/\",\"d\":\"e\"}", "Signup!/ e");
    check("{\"n\":\"a\\nb\",\"u\":\"https://x/\",\"d\":\"e\"}", "fault name");
    check("{\"n\":\"engagement\",\"sd\":40,\"d\":\"e\",\"u\":\"https://x/\",\"e\":3000,\"v\":36}",
        "!/ e");
}

Test(plausible_event, domains)
{
#define FOR(domain) "{\"n\":\"pageview\",\"u\":\"https://x/\",\"d\":\"" domain "\"}"
    check(FOR("Example.ORG"), "/ example.org");
    check(FOR("a,b, c,a"), "/ a b c");
    check(FOR(""), "fault domain");
    check(FOR("a,"), "fault domain");
    check(FOR("a b"), "fault domain");
    check(FOR("a:8080"), "fault domain");
    check(
        FOR("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"), "/ 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");
    check(FOR("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"), "fault domain");
}

Test(plausible_event, faults)
{
    check("", "fault -");
    check("[]", "fault -");
    check("{", "fault -");
    check("{} x", "fault -");
    check("\"x\"", "fault -");
    check("{}", "fault name");
    check("{\"n\":1}", "fault name");
    check("{\"n\":\"\"}", "fault name");
    check("{\"n\":\"x\"}", "fault url");
    check("{\"n\":\"x\",\"u\":null}", "fault url");
    check("{\"n\":\"x\",\"u\":\"https://x/\"}", "fault domain");
    check("{\"n\":\"x\",\"u\":\"https://x/\",\"d\":1}", "fault domain");
    check(VIEW(""), "fault url");
    check(VIEW("/path"), "fault url");
    check(VIEW("data:text/html,x"), "fault url");
    check(VIEW("://x"), "fault url");
    check(VIEW("https://x/\\n"), "fault url");
    check(VIEW("https://x/\\u0000"), "fault -");
}

Test(plausible_event, the_largest)
{
    size_t n = PLAUSIBLE_BODY_MAX;
    char *body = malloc(n);
    struct plausible_event event;
    struct plausible_fault fault;
    memset(body, ' ', n);
    memcpy(body, VIEW("https://x/"), sizeof(VIEW("https://x/")) - 1);
    cr_expect_eq(plausible_decode((struct slice){body, n}, &event, &fault), PLAUSIBLE_OK);
    plausible_release(&event);
    free(body);
}

/* "name=value" of each property, with commas between. */
static void check_props(const char *props, const char *expected)
{
    struct plausible_event event;
    struct plausible_fault fault;
    char body[4096], text[4096] = "";
    (void)snprintf(body, sizeof(body),
        "{\"n\":\"pageview\",\"u\":\"https://x/\",\"d\":\"x\",\"props\":%s}", props);
    cr_assert_eq(plausible_decode(slice_of(body), &event, &fault), PLAUSIBLE_OK, "%s", body);
    for (size_t i = 0, n = 0; i < event.n_props; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s=%.*s", i > 0 ? "," : "",
            (int)event.props[i].name.n, event.props[i].name.p, (int)event.props[i].value.n,
            event.props[i].value.p);
    }
    cr_expect_str_eq(text, expected, "%s", text);
    plausible_release(&event);
}

Test(plausible_event, properties_are_texts_numbers_and_truths)
{
    check_props("{\"a\":\"text\",\"b\":true,\"c\":false,\"d\":12,\"e\":1.5,\"f\":-0.25}",
        "a=text,b=true,c=false,d=12,e=1.5,f=-0.25");
    check_props("\"{\\\"a\\\":7}\"", "a=7");
}

Test(plausible_event, other_properties_are_left_out)
{
    check_props(
        "{\"a\":null,\"b\":\"\",\"c\":[1],\"d\":{},\"\":\"x\",\"e\":\"a\\u0001b\",\"f\":1}", "f=1");
    check_props("[1,2]", "");
    check_props("\"no JSON\"", "");
    check_props("7", "");
    char props[2048] = "{", expected[2048] = "";
    for (size_t i = 0; i < PLAUSIBLE_PROPS_MAX + 3; i++) {
        (void)sprintf(props + strlen(props), "%s\"p%zu\":%zu", i > 0 ? "," : "", i, i);
        if (i < PLAUSIBLE_PROPS_MAX) {
            (void)sprintf(expected + strlen(expected), "%sp%zu=%zu", i > 0 ? "," : "", i, i);
        }
    }
    check_props(strcat(props, "}"), expected);
}

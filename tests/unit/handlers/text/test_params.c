#include "handlers/text/params.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static const struct param_spec specs[] = {
    {"site", false}, {"page", true}, {"from", false}, {"to", false}};
#define N_SPECS (sizeof specs / sizeof specs[0])

static enum params_result parse(const char *query, struct params *ret)
{
    return params_parse(slice_of(query), specs, N_SPECS, ret);
}

/* The one value of @name in @query is @expected. */
static void check_value(const char *query, const char *name, struct slice expected)
{
    struct params params;
    struct slice value = {NULL, 0};

    cr_assert_eq(parse(query, &params), PARAMS_OK, "\"%s\"", query);
    cr_expect_eq(params_count(&params, name), 1, "\"%s\"", query);
    cr_expect(params_get(&params, name, &value), "\"%s\"", query);
    cr_expect(slice_equal(value, expected), "\"%s\": \"%.*s\"", query, (int)value.n, value.p);
    params_release(&params);
}

/* What strangers' pages ask: what is not known is passed by, and empty is a value. */
Test(params, only_what_is_known)
{
    struct params params;
    struct slice value = {NULL, 0};
    cr_assert_eq(params_parse_known(SLICE("x=%&%zz&=1&site=a&utm&%ff=2&from=&page=/%20b"), specs,
                     N_SPECS, &params),
        PARAMS_OK);
    cr_expect_eq(params.n, 3);
    cr_expect(params_get(&params, "site", &value) && slice_equal(value, SLICE("a")));
    cr_expect(params_get(&params, "from", &value) && value.n == 0);
    cr_expect(params_get(&params, "page", &value) && slice_equal(value, SLICE("/ b")));
    params_release(&params);
    cr_expect_eq(params_parse_known(SLICE("x=1&site=%"), specs, N_SPECS, &params), PARAMS_REFUSED);
    cr_expect_str_eq(params.error.parameter, "site");
    cr_expect_eq(
        params_parse_known(SLICE("site=a&site=a"), specs, N_SPECS, &params), PARAMS_REFUSED);
}

/* @query is refused for @parameter, with a detail that contains @word, and nothing is left of it.
 */
static void check_refused(struct slice query, const char *parameter, const char *word)
{
    struct params params;
    struct slice value;

    cr_assert_eq(params_parse(query, specs, N_SPECS, &params), PARAMS_REFUSED, "\"%.*s\"",
        (int)query.n, query.p);
    cr_expect_str_eq(params.error.parameter, parameter, "\"%.*s\": %s", (int)query.n, query.p,
        params.error.parameter);
    cr_expect_not_null(strstr(params.error.detail, word), "\"%.*s\": %s", (int)query.n, query.p,
        params.error.detail);
    cr_expect(params.n == 0 && !params.pairs && !params.bytes);
    cr_expect_not(params_get(&params, "site", &value));
    params_release(&params);
}

static void check_empty(const char *query)
{
    struct params params;
    struct slice value = SLICE("untouched");

    cr_assert_eq(parse(query, &params), PARAMS_OK, "\"%s\"", query);
    cr_expect_eq(params.n, 0);
    cr_expect_not(params_get(&params, "site", &value));
    cr_expect(slice_equal(value, SLICE("untouched")));
    cr_expect_null(params_next(&params, "page", NULL));
    cr_expect_eq(params_count(&params, "page"), 0);
    params_release(&params);
}

Test(params, empty)
{
    struct params params;

    check_empty("");
    check_empty("&");
    check_empty("&&&");
    cr_expect_eq(params_parse((struct slice){NULL, 0}, specs, N_SPECS, &params), PARAMS_OK);
    params_release(&params);
    params = (struct params){0};
    params_release(&params);
    cr_expect_eq(params_count(&params, "page"), 0);
}

Test(params, values)
{
    check_value("site=a", "site", SLICE("a"));
    check_value("&&site=a&", "site", SLICE("a"));
    check_value("from=now-1d&site=a&to=now", "site", SLICE("a"));
    check_value("site=a=b==", "site", SLICE("a=b=="));
    check_value("site==", "site", SLICE("="));
    check_value("site=?a;b#c", "site", SLICE("?a;b#c"));
    check_value("page=/a?b/%C3%A4", "page", SLICE("/a?b/\xC3\xA4"));
    check_value("page=/\xC3\xA4", "page", SLICE("/\xC3\xA4"));
}

Test(params, decodes)
{
    check_value("site=a+b%20c%2Bd", "site", SLICE("a b c+d"));
    check_value("site=%26%3D%25", "site", SLICE("&=%"));
    check_value("site=%2525", "site", SLICE("%25"));
    check_value("site=%c3%A4%C3%bc", "site", SLICE("\xC3\xA4\xC3\xBC"));
    check_value("%73ite=a", "site", SLICE("a"));
    check_value("site=%01%7F", "site", SLICE("\x01\x7F")); /* the routes know which they refuse */
    check_value("from=2026-11-20T15:30:00+01:00", "from", SLICE("2026-11-20T15:30:00 01:00"));
}

Test(params, bad_escapes)
{
    static const char *const queries[] = {"site=%", "site=a%", "site=%4", "site=%4&to=now",
        "site=%%41", "site=%4g", "site=%g4", "site=% 4", "site=%+4", "site=%-1", "site=%0x41",
        "site=%u0041"};

    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        check_refused(slice_of(queries[i]), "site", "hexadecimal");
    }
    /* the escape goes on behind the slice */
    check_refused((struct slice){"site=%41", 7}, "site", "hexadecimal");
    check_refused(slice_of("s%zzite=a"), "s%zzite", "hexadecimal");
}

Test(params, segment_of_a_path)
{
    static const struct {
        const char *raw, *decoded; /* NULL: refused */
    } rows[] = {
        {"abc", "abc"},
        {"a+b", "a+b"},
        {"a%2Fb", "a/b"},
        {"%C3%A4", "\xC3\xA4"},
        {"a%", NULL},
        {"a%2", NULL},
        {"%zz", NULL},
        {"%00", NULL},
        {"%C3", NULL},
        {"\xff", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[32];
        struct slice raw = slice_of(rows[i].raw), segment;
        memcpy(bytes, raw.p, raw.n);
        const char *fault = params_decode_segment((struct slice){bytes, raw.n}, bytes, &segment);
        cr_assert_eq(fault == NULL, rows[i].decoded != NULL, "%s", rows[i].raw);
        cr_expect(fault != NULL || slice_equal(segment, slice_of(rows[i].decoded)));
    }
}

Test(params, nul_bytes)
{
    check_refused(slice_of("site=%00"), "site", "NUL");
    check_refused(slice_of("to=now&page=a%00b"), "page", "NUL");
    check_refused(SLICE("site=a\0b"), "site", "NUL");
    check_refused(slice_of("site%00=a"), "site%00", "NUL");
}

Test(params, utf8)
{
    static const char *const bad[] = {"%80", "%BF", "%C3", "%C3%C3", "a%C3b", "%C0%80", "%C1%BF",
        "%E0%9F%BF", "%E4%BD", "%ED%A0%80", "%ED%BF%BF", "%F0%8F%BF%BF", "%F0%9F%98",
        "%F4%90%80%80", "%F5%80%80%80", "%FF", "%FE", "%F8%88%80%80%80", "\xC3", "%E4%BD%41"};
    static const char *const good[] = {"%7F", "%C2%80", "%DF%BF", "%E0%A0%80", "%ED%9F%BF",
        "%EE%80%80", "%EF%BF%BF", "%F0%90%80%80", "%F0%9F%98%80", "%F4%8F%BF%BF"};
    char query[64];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(query, sizeof query, "page=%s&to=now", bad[i]);
        check_refused(slice_of(query), "page", "UTF-8");
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct params params;

        snprintf(query, sizeof query, "page=%s", good[i]);
        cr_expect_eq(parse(query, &params), PARAMS_OK, "%s", query);
        params_release(&params);
    }
}

Test(params, refuses_by_name)
{
    check_refused(slice_of("form=now"), "form", "unknown");
    struct params params;
    cr_expect_eq(parse("form=now", &params), PARAMS_REFUSED);
    cr_expect(params.error.unknown);
    params_release(&params);
    cr_expect_eq(parse("site=", &params), PARAMS_REFUSED);
    cr_expect_not(params.error.unknown);
    params_release(&params);
    check_refused(slice_of("SITE=a"), "SITE", "unknown");
    check_refused(slice_of("sit=a"), "sit", "unknown");
    check_refused(slice_of("sites=a"), "sites", "unknown");
    check_refused(slice_of("site=a&%66oo=b"), "foo", "unknown");
    check_refused(slice_of("site[]=a"), "site[]", "unknown");
    check_refused(slice_of("+site=a"), " site", "unknown");
    check_refused(slice_of("form"), "form", "unknown");
    check_refused(slice_of("=a"), "", "without a name");
    check_refused(slice_of("="), "", "without a name");
    check_refused(slice_of("site="), "site", "empty");
    check_refused(slice_of("site"), "site", "empty");
    check_refused(slice_of("page=a&page=&to=now"), "page", "empty");
    check_refused(slice_of("site=a&to=now&site=a"), "site", "more than once");
    check_refused(slice_of("site=a&%73ite=b"), "site", "more than once");
    check_refused(slice_of("to=&form=1"), "to", "empty"); /* the first fault counts */
}

Test(params, error_shows_harmless_names)
{
    char query[200], expected[PARAMS_NAME_MAX + 1];

    check_refused(slice_of("a%0D%0Ab%1B[31m%C3%A4=1"), "a??b?[31m??", "unknown");
    check_refused(slice_of("a\x7f\xff=1"), "a??", "UTF-8");
    memset(query, 'x', sizeof query);
    memset(expected, 'x', sizeof expected);
    expected[PARAMS_NAME_MAX] = '\0';
    check_refused((struct slice){query, sizeof query}, expected, "unknown");
    check_refused((struct slice){query, PARAMS_NAME_MAX}, expected, "unknown");
    expected[PARAMS_NAME_MAX - 1] = '\0';
    check_refused((struct slice){query, PARAMS_NAME_MAX - 1}, expected, "unknown");
}

Test(params, repeated)
{
    static const char *const expected[] = {"/a", "/b", "/a"};
    struct params params;
    struct slice first;
    size_t n = 0;

    cr_assert_eq(parse("page=/a&site=x&page=/b&to=now&page=%2Fa", &params), PARAMS_OK);
    cr_expect_eq(params_count(&params, "page"), 3);
    for (const struct param *p = NULL; (p = params_next(&params, "page", p)) != NULL; n++) {
        cr_assert_lt(n, 3);
        cr_expect(slice_equal(p->value, slice_of(expected[n])));
        cr_expect_eq(p->spec, &specs[1]);
    }
    cr_expect_eq(n, 3);
    cr_assert(params_get(&params, "page", &first));
    cr_expect(slice_equal(first, SLICE("/a")));
    cr_expect_eq(params_count(&params, "site"), 1);
    cr_expect_eq(params_count(&params, "no such"), 0);
    params_release(&params);
}

Test(params, a_route_without_parameters)
{
    struct params params;

    cr_expect_eq(params_parse(SLICE(""), NULL, 0, &params), PARAMS_OK);
    params_release(&params);
    cr_expect_eq(params_parse(SLICE("a=b"), NULL, 0, &params), PARAMS_REFUSED);
    cr_expect_str_eq(params.error.parameter, "a");
    params_release(&params);
}

Test(params, at_most_so_many)
{
    size_t n = 7 * (PARAMS_MAX + 1);
    char *query = malloc(n);
    struct params params;

    cr_assert_not_null(query);
    for (size_t i = 0; i <= PARAMS_MAX; i++) {
        memcpy(query + 7 * i, "page=a&", 7);
    }
    cr_assert_eq(params_parse((struct slice){query, n - 7}, specs, N_SPECS, &params), PARAMS_OK);
    cr_expect_eq(params_count(&params, "page"), PARAMS_MAX);
    params_release(&params);
    check_refused((struct slice){query, n}, "page", "too many");
    memset(query, '&', n); /* empty pairs are none, however many */
    memcpy(query + n - 7, "&site=a", 7);
    cr_assert_eq(params_parse((struct slice){query, n}, specs, N_SPECS, &params), PARAMS_OK);
    cr_expect_eq(params.n, 1);
    params_release(&params);
    free(query);
}

Test(params, numbers)
{
    static const struct {
        const char *query;
        bool good;
        size_t value;
    } cases[] = {{"", true, 7}, {"page=1", true, 1}, {"page=50", true, 50}, {"page=51", false, 7},
        {"page=0", false, 7}, {"page=01", false, 7}, {"page=-1", false, 7}, {"page=1x", false, 7},
        {"page=%2B1", false, 7}, {"page=18446744073709551617", false, 7}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct params params;
        size_t value = 7;
        cr_assert_eq(parse(cases[i].query, &params), PARAMS_OK);
        cr_expect_eq(
            params_number(&params, "page", 50, &value), cases[i].good, "%s", cases[i].query);
        cr_expect_eq(value, cases[i].value, "%s", cases[i].query);
        params_release(&params);
    }
}

#include "handlers/reply/csv.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* @json, asked for with @accept, is @type and, if CSV, @expected. */
static void check(const struct csv_shape *shape, const char *accept, const char *json,
    const char *type, const char *expected)
{
    struct slice fields[HTTP_KNOWN_N] = {[FIELD_ACCEPT] = slice_of(accept)};
    struct http_exchange exchange = {.request = {.fields = fields}};
    const struct http_response *response = &exchange.response;
    csv_reply(&exchange, 200, json_loads(json, JSON_DECODE_ANY, NULL), shape);
    cr_assert_eq(response->status, 200);
    cr_expect_str_eq(response->content_type, type);
    cr_expect_str_eq(response->headers[0].value, "Accept");
    cr_expect(response->body_n == strlen(expected) &&
                  memcmp(response->body, expected, response->body_n) == 0,
        "%s: [%.*s]", json, (int)response->body_n, response->body);
    free(response->body);
}

static void check_csv(const struct csv_shape *shape, const char *json, const char *expected)
{
    check(shape, "text/csv", json, "text/csv; charset=utf-8; header=present", expected);
}

static const struct csv_shape series = {"series", {"site", "from", "uv"}};
static const struct csv_shape triangle = {"cohorts/returned", {"cohort", "offset", "users"}};
static const struct csv_shape users = {"users", {"user"}};

Test(csv, rows_and_what_they_have_from_the_answer)
{
    check_csv(&series,
        "{\"site\":\"s\",\"uv\":9,\"series\":[{\"from\":\"a\",\"uv\":1},{\"from\":\"b\",\"uv\":2.5}"
        "]}",
        "site,from,uv\r\ns,a,1\r\ns,b,2.5\r\n");
    check_csv(&series, "{\"site\":\"s\",\"series\":[]}", "site,from,uv\r\n");
    check_csv(&series, "{\"site\":null,\"series\":[{\"uv\":true}]}", "site,from,uv\r\n,,true\r\n");
}

Test(csv, an_answer_without_rows_is_one)
{
    check_csv(&series, "{\"site\":\"s\",\"from\":\"a\",\"uv\":9}", "site,from,uv\r\ns,a,9\r\n");
}

Test(csv, rows_in_groups)
{
    check_csv(&triangle,
        "{\"cohorts\":[{\"cohort\":\"a\",\"returned\":[{\"offset\":1,\"users\":3},{\"offset\":2,"
        "\"users\":0}]},"
        "{\"cohort\":\"b\",\"returned\":[]}]}",
        "cohort,offset,users\r\na,1,3\r\na,2,0\r\n");
    check_csv(&triangle, "{\"cohort\":\"a\",\"returned\":[{\"offset\":1,\"users\":3}]}",
        "cohort,offset,users\r\na,1,3\r\n");
}

Test(csv, values_that_are_no_objects_fill_the_first_column)
{
    check_csv(&users, "{\"users\":[\"a\",\"b c\"]}", "user\r\na\r\nb c\r\n");
}

Test(csv, values_of_every_kind)
{
    check_csv(&users, "{\"users\":[true,false,null,{},[],1e30,0.1]}",
        "user\r\ntrue\r\nfalse\r\n\r\n\r\n\r\n1e+30\r\n0.1\r\n");
    check_csv(&triangle, "{\"cohort\":\"a\"}", "cohort,offset,users\r\na,,\r\n");
    check_csv(&(struct csv_shape){NULL, {"a"}}, "{\"a\":5}", "a\r\n5\r\n");
}

Test(csv, what_needs_quotes)
{
    check_csv(&users,
        "{\"users\":[\"a,b\",\"a\\\"b\",\"a\\r\\nb\",\" a\",\"a \",\"\",\"\\u00e4\"]}",
        "user\r\n\"a,b\"\r\n\"a\"\"b\"\r\n\"a\r\nb\"\r\n\" a\"\r\n\"a \"\r\n\r\n\u00e4\r\n");
}

/* OWASP, CSV injection. */
Test(csv, formulas_are_made_harmless)
{
    check_csv(&users,
        "{\"users\":[\"=1+1\",\"+1\",\"-1\",\"@a\",\"\\tx\",\"\\rx\",\"\\nx\",\"=\\\"\","
        "\"\\uff1d1\",\"\\uff0b\","
        "\"\\uff0d\",\"\\uff20\",\"a=1\",\"/-\"]}",
        "user\r\n\"'=1+1\"\r\n\"'+1\"\r\n\"'-1\"\r\n\"'@a\"\r\n\"'\tx\"\r\n\"'\rx\"\r\n\"'"
        "\nx\"\r\n\"'=\"\"\"\r\n"
        "\"'\uff1d1\"\r\n\"'\uff0b\"\r\n\"'\uff0d\"\r\n\"'\uff20\"\r\na=1\r\n/-\r\n");
    check_csv(&users, "{\"users\":[-1,-2.5]}", "user\r\n-1\r\n-2.5\r\n"); /* numbers are none */
}

Test(csv, who_wants_it)
{
    static const char *const yes[] = {"text/csv", "TEXT/CSV", "text/csv; charset=utf-8",
        "text/csv,application/json;q=0.9", "text/csv, */*", "*/*;q=0.1, text/csv;q=0.5",
        "application/json;q=0.1,text/csv;q=0.11", "text/html, text/csv;q=0.001", "\t text/csv",
        "text/csv ;\tq=0.5", "text/csv;Q=0.3", "text/csv;q=3", "text/csv;", "text/csv;q",
        "application/*;q=0.4, */*;q=0.1, text/csv;q=0.4", "text/csv;charset=utf-8; q=0.2"};
    static const char *const no[] = {"", "*/*", "application/json", "text/csv;q=0",
        "application/json,text/csv", "text/csv;q=0.5, */*", "text/csvx", "text/*", "x",
        "text/csv;q=0.2,application/json;q=0.3", "text/csv;q=x", "text/csv; q=0.000",
        "text/csv;q=", ",", "application/*;q=0.5, text/csv;q=0.4"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        cr_expect(csv_wanted(slice_of(yes[i])), "%s", yes[i]);
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        cr_expect_not(csv_wanted(slice_of(no[i])), "%s", no[i]);
    }
}

Test(csv, json_is_as_ever)
{
    check(&users, "*/*", "{\"users\":[]}", "application/json", "{\"users\":[]}");
}

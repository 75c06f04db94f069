#include "handlers/filter/filter_body.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(filter_body, .timeout = 60);

/* An exchange with a body. */
struct asked {
    struct slice fields[HTTP_KNOWN_N];
    struct http_exchange exchange;
};

static struct http_exchange *ask(struct asked *asked, const char *type, struct slice body)
{
    *asked = (struct asked){.fields = {[FIELD_CONTENT_TYPE] = slice_of(type)}};
    asked->exchange.request.fields = asked->fields;
    asked->exchange.request.body = body;
    return &asked->exchange;
}

static unsigned parameters(const char *body, struct filter_job *job)
{
    struct asked asked;
    bool ok = filter_body_parameters(ask(&asked, "application/json", slice_of(body)), job);
    unsigned status = asked.exchange.response.status;
    free(asked.exchange.response.body);
    cr_assert_eq(ok, status == 0, "%s", body);
    return status;
}

static unsigned items(struct slice body, struct filter_items *ret)
{
    struct asked asked;
    *ret = (struct filter_items){0};
    bool ok = filter_body_items(ask(&asked, "", body), ret);
    unsigned status = asked.exchange.response.status;
    free(asked.exchange.response.body);
    cr_assert_eq(ok, status == 0, "%.*s", (int)body.n, body.p);
    return status;
}

Test(filter_body, parameters)
{
    struct filter_job job;
    cr_assert_eq(parameters("{\"capacity\":7,\"error_rate\":0.25,\"expansion\":0}", &job), 0);
    cr_expect(job.capacity == 7 && job.error == 0.25 && job.expansion == 0);
    cr_assert_eq(parameters("{}", &job), 0);
    cr_expect(job.capacity == 7 && job.error == 0.25 && job.expansion == 0, "as they were");
    cr_assert_eq(parameters("{\"capacity\":1073741824,\"error_rate\":1e-15}", &job), 0);
    cr_expect_eq(job.capacity, 1073741824);
}

Test(filter_body, parameters_out_of_range)
{
    static const char *const bad[] = {"{\"capacity\":0}", "{\"capacity\":1073741825}",
        "{\"capacity\":1.0}", "{\"capacity\":true}", "{\"error_rate\":0}",
        "{\"error_rate\":0.2501}", "{\"error_rate\":1e-16}", "{\"error_rate\":null}",
        "{\"expansion\":1}", "{\"expansion\":2.0}", "{\"x\":1}", "[]", "{\"capacity\":1e30}",
        "{\"capacity\":99999999999999999999}", "1", "null", "\"x\""};
    struct filter_job job;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(parameters(bad[i], &job), 422, "%s", bad[i]);
    }
    cr_expect_eq(parameters("{", &job), 400);
    cr_expect_eq(parameters("", &job), 400);
    cr_expect_eq(parameters("{\"capacity\":1,\"capacity\":1}", &job), 400);
}

/* What is at fault is named, not what stands beside it. */
Test(filter_body, large_numbers_are_out_of_range)
{
    struct asked asked;
    struct filter_job job;
    cr_assert_not(filter_body_parameters(
        ask(&asked, "", SLICE("{\"capacity\":5,\"expansion\":123456789012345678901}")), &job));
    cr_expect(strstr(asked.exchange.response.body, "\"/expansion\"") != NULL);
    free(asked.exchange.response.body);
    struct filter_items got = {0};
    cr_assert_not(filter_body_items(
        ask(&asked, "", SLICE("{\"items\":[1,\"a\",123456789012345678901]}")), &got));
    cr_expect(strstr(asked.exchange.response.body, "\"/items/2\"") != NULL);
    free(asked.exchange.response.body);
    filter_items_release(&got);
}

Test(filter_body, items_are_texts_and_integers)
{
    struct filter_items got;
    cr_assert_eq(items(SLICE("{\"items\":[\"a\",-42,\"\\u0000b\",9223372036854775807]}"), &got), 0);
    cr_assert_eq(got.n, 4);
    cr_expect(slice_equal(got.items[0], SLICE("a")));
    cr_expect(slice_equal(got.items[1], SLICE("-42")));
    cr_expect(slice_equal(got.items[2], SLICE("\0b")));
    cr_expect(slice_equal(got.items[3], SLICE("9223372036854775807")));
    filter_items_release(&got);
    cr_expect_null(got.items);
}

Test(filter_body, items_that_are_none)
{
    static const char *const bad[] = {"{\"items\":[]}", "{}", "{\"items\":{}}",
        "{\"items\":[\"\"]}", "{\"items\":[1.5]}", "{\"items\":[null]}", "{\"items\":[[]]}",
        "{\"items\":[1],\"x\":1}", "[1]", "{\"items\":[9223372036854775808]}"};
    struct filter_items got;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(items(slice_of(bad[i]), &got), 422, "%s", bad[i]);
        filter_items_release(&got);
    }
    cr_expect_eq(items(SLICE("\xff"), &got), 400);
    filter_items_release(&got);
    cr_expect_eq(items(SLICE("{\"items\":[1e999]}"), &got), 400);
    filter_items_release(&got);
}

Test(filter_body, at_most_a_thousand_items)
{
    static char body[16 + 2 * 1001 + 2];
    for (size_t n = 1000; n <= 1001; n++) {
        size_t at = 10;
        memcpy(body, "{\"items\":[", at);
        for (size_t i = 0; i < n; i++) {
            body[at++] = '1';
            body[at++] = i + 1 < n ? ',' : ']';
        }
        body[at++] = '}';
        struct filter_items got;
        cr_expect_eq(items((struct slice){body, at}, &got), n == 1000 ? 0 : 422);
        cr_expect(n > 1000 || got.n == n);
        filter_items_release(&got);
    }
}

Test(filter_body, types)
{
    static const struct {
        const char *type;
        bool good;
    } cases[] = {{"", true}, {"application/json", true}, {"APPLICATION/JSON;charset=utf-8", true},
        {"application/jsonx", false}, {"text/plain", false}, {"application/x-ndjson", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct asked asked;
        struct filter_job job;
        bool ok = filter_body_parameters(ask(&asked, cases[i].type, SLICE("{}")), &job);
        cr_expect_eq(ok, cases[i].good, "%s", cases[i].type);
        cr_expect_eq(asked.exchange.response.status, cases[i].good ? 0 : 415);
        free(asked.exchange.response.body);
    }
}

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/limit/limit_json.h"

static enum limit_json_result decode(
    const char *text, struct limit_question *question, struct limit_json_fault *fault, char **ret)
{
    *ret = strdup(text);
    return limit_json_decode(*ret, strlen(text), question, fault);
}

Test(limit_json, all_members)
{
    struct limit_question q;
    struct limit_json_fault fault;
    char *body;
    cr_assert_eq(
        decode(" {\"key\":\"a\\u00e4\",\"algorithm\":\"sliding\",\"limit\":10000,\"period_s\":0.5,"
               "\"burst\":7,\"cost\":0} ",
            &q, &fault, &body),
        LIMIT_JSON_OK);
    cr_expect(slice_equal(q.key, SLICE("a\xc3\xa4")) && q.policy.n == 0);
    cr_expect(q.limit.algorithm == LIMIT_SLIDING && q.limit.count == 10000);
    cr_expect(q.limit.period_us == 500000 && q.cost == 0);
    free(body);
    cr_assert_eq(decode("{\"policy\":\"p\",\"key\":\"k\"}", &q, &fault, &body), LIMIT_JSON_OK);
    cr_expect(slice_equal(q.policy, SLICE("p")) && q.cost == 1);
    free(body);
}

Test(limit_json, periods)
{
    static const struct {
        const char *text;
        int64_t us;
    } rows[] = {{"1", 1000000}, {"0.001", 1000}, {"1e-3", 1000}, {"0.0015", 1500},
        {"1.0000004", 1000000}, {"1.0000006", 1000001}, {"31622400", LIMIT_PERIOD_MAX_US},
        {"6E1", 60000000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[128];
        char *body;
        struct limit_question q;
        struct limit_json_fault fault;
        (void)snprintf(text, sizeof(text),
            "{\"key\":\"k\",\"algorithm\":\"funnel\",\"limit\":1,\"period_s\":%s}", rows[i].text);
        cr_expect_eq(decode(text, &q, &fault, &body), LIMIT_JSON_OK, "%s", rows[i].text);
        cr_expect_eq(q.limit.period_us, rows[i].us, "%s", rows[i].text);
        free(body);
    }
}

Test(limit_json, the_first_fault_is_told)
{
    static const struct {
        const char *text, *pointer;
    } rows[] = {
        {"{}", "/key"},
        {"{\"key\":\"k\"}", "/algorithm"},
        {"{\"limit\":0,\"key\":\"k\",\"algorithm\":\"x\",\"period_s\":1}", "/algorithm"},
        {"{\"key\":\"k\",\"algorithm\":\"funnel\",\"limit\":0,\"period_s\":-1}", "/limit"},
        {"{\"key\":\"k\",\"algorithm\":\"funnel\",\"limit\":1,\"period_s\":1,\"burst\":1000000001}",
            "/burst"},
        {"{\"key\":\"k\",\"x\":[{}],\"limit\":\"y\"}", ""},
        {"{\"key\":\"k\",\"policy\":\"p\",\"algorithm\":\"funnel\"}", "/algorithm"},
        {"{\"key\":\"k\",\"policy\":\"p:q\"}", "/policy"},
        {"{\"key\":\"k\",\"policy\":\"p\",\"policy\":\"p\"}", "/policy"},
        {"{\"key\":\"\\ud800\",\"policy\":\"p\"}", "/key"},
        {"{\"key\":\"k\",\"policy\":\"p\",\"cost\":-1}", "/cost"},
        {"{\"key\":\"k\",\"policy\":\"p\",\"cost\":1000000000001}", "/cost"},
        {"{\"key\":\"k\",\"policy\":\"p\",\"burst\":1}", "/burst"},
        {" [] ", ""},
        {"\"key\"", ""},
        {"null", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct limit_question q;
        struct limit_json_fault fault;
        char *body;
        cr_expect_eq(
            decode(rows[i].text, &q, &fault, &body), LIMIT_JSON_UNACCEPTABLE, "%s", rows[i].text);
        cr_expect_str_eq(fault.pointer, rows[i].pointer, "%s", rows[i].text);
        free(body);
    }
}

/* The last values that are allowed. */
Test(limit_json, bounds)
{
    static const unsigned longest[] = {LIMIT_KEY_MAX, LIMIT_KEY_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        char text[LIMIT_KEY_MAX + 64];
        char *body;
        struct limit_question q;
        struct limit_json_fault fault;
        (void)snprintf(text, sizeof(text),
            "{\"key\":\"%0*d\",\"policy\":\"p\",\"cost\":1000000000000}", (int)longest[i], 0);
        cr_expect_eq(decode(text, &q, &fault, &body),
            i == 0 ? LIMIT_JSON_OK : LIMIT_JSON_UNACCEPTABLE, "%u bytes", longest[i]);
        if (i == 0) {
            cr_expect(q.key.n == LIMIT_KEY_MAX && q.cost == LIMIT_COST_MAX);
        } else {
            cr_expect_str_eq(fault.pointer, "/key");
        }
        free(body);
    }
}

Test(limit_json, what_is_no_json_has_a_place)
{
    static const char *const texts[] = {
        "", " ", "[", "[] []", "{", "{\"key\"", "{\"key\":}", "{} {}", "{\"a\":[[[[[]]]]]}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct limit_question q;
        struct limit_json_fault fault;
        char *body;
        cr_expect_eq(decode(texts[i], &q, &fault, &body), LIMIT_JSON_MALFORMED, "%s", texts[i]);
        cr_expect(fault.line == 1 && fault.column >= 1 && fault.detail != NULL, "%s", texts[i]);
        free(body);
    }
}

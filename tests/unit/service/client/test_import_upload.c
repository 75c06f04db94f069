/* What an import takes an answer for: a wrong guess here counts events twice, or never. */
#include "service/client/import_upload.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_http.h"

TestSuite(import_upload, .timeout = 60);

#define EVENTS 5
#define BODY   "{}\n{}\n{}\n{}\n{}\n"

static const char *script[1];
static struct import_upload_answer answer;

static enum import_upload_result post_to(const char *url, const char *token, bool count_robots)
{
    struct import_upload *upload = import_upload_new(url, token, count_robots);
    cr_assert_not_null(upload);
    enum import_upload_result result =
        import_upload_post(upload, "the-key", SLICE(BODY), EVENTS, &answer);
    import_upload_free(upload);
    return result;
}

/* Post events to a server that says @said, once. */
static enum import_upload_result post_answered(const char *said)
{
    script[0] = said;
    scripted_http_start(script, 1);
    return post_to(scripted_http_url(), NULL, false);
}

static enum import_upload_result post(int status, const char *headers, const char *body)
{
    char *said = scripted_answer(status, headers, body);
    enum import_upload_result result = post_answered(said);
    free(said);
    return result;
}

Test(import_upload, what_an_answer_without_counts_means)
{
    static const struct {
        int status;
        const char *body;
        enum import_upload_result result;
    } cases[] = {
        {413, "{}", IMPORT_UPLOAD_TOO_LARGE},
        {429, "{\"retry_after_s\":-1}", IMPORT_UPLOAD_TOO_LARGE},
        {429, "{\"retry_after_s\":3}", IMPORT_UPLOAD_BUSY},
        {429, "no JSON", IMPORT_UPLOAD_BUSY},
        {503, "{}", IMPORT_UPLOAD_BUSY},
        {422, "{\"detail\":\"the key was used\"}", IMPORT_UPLOAD_KEY_USED},
        {301, "", IMPORT_UPLOAD_REFUSED},
        {401, "{}", IMPORT_UPLOAD_REFUSED},
        {499, "{}", IMPORT_UPLOAD_REFUSED},
        {200, "{}", IMPORT_UPLOAD_IN_DOUBT},
        {500, "{}", IMPORT_UPLOAD_IN_DOUBT},
        {504, "{}", IMPORT_UPLOAD_IN_DOUBT},
        {408, "{}", IMPORT_UPLOAD_IN_DOUBT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(post(cases[i].status, "", cases[i].body), cases[i].result, "%d %s",
            cases[i].status, cases[i].body);
        cr_expect_eq(answer.accepted + answer.rejected + answer.dropped, 0);
    }
}

Test(import_upload, a_202_accounts_for_every_event)
{
    cr_expect_eq(post(202, "", "{\"accepted\":5,\"rejected\":0}"), IMPORT_UPLOAD_ANSWERED);
    cr_expect_eq(answer.accepted, 5);
    cr_expect_not(answer.replayed);
    cr_expect_eq(post(202, "Idempotency-Replayed: true\r\n",
                     "{\"accepted\":2,\"rejected\":1,\"dropped_total\":2}"),
        IMPORT_UPLOAD_ANSWERED);
    cr_expect_eq(answer.accepted, 2);
    cr_expect_eq(answer.rejected, 1);
    cr_expect_eq(answer.dropped, 2);
    cr_expect(answer.replayed);
}

/* Another program behind the address, or a proxy's page: nobody knows what became of the events. */
Test(import_upload, a_202_that_does_not_account_for_them_leaves_them_in_doubt)
{
    static const char *const bodies[] = {"", "[]", "{}", "{\"accepted\":5}", "{\"rejected\":5}",
        "{\"accepted\":\"5\",\"rejected\":0}", "{\"accepted\":5,\"rejected\":0.0}",
        "{\"accepted\":4,\"rejected\":0}", "{\"accepted\":5,\"rejected\":1}",
        "{\"accepted\":-1,\"rejected\":6}", "{\"accepted\":6,\"rejected\":-1}",
        "{\"accepted\":6,\"rejected\":0,\"dropped_total\":-1}"};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        cr_expect_eq(post(202, "", bodies[i]), IMPORT_UPLOAD_IN_DOUBT, "%s", bodies[i]);
        cr_expect_not_null(strstr(answer.detail, "all 5 events"), "%s", answer.detail);
    }
}

Test(import_upload, rejects_are_listed_where_they_name_an_event)
{
    cr_assert_eq(
        post(422, "",
            "{\"errors\":[{\"index\":0,\"pointer\":\"/page\",\"detail\":\"is missing\"},"
            "{\"index\":5,\"detail\":\"behind the last\"},{\"index\":-1},{\"index\":\"1\"},"
            "{\"detail\":\"no index\"},7,{\"index\":4,\"detail\":\"a\\tb\\u007f\"}]}"),
        IMPORT_UPLOAD_ANSWERED);
    cr_expect_eq(answer.rejected, EVENTS, "a 422 with a list: none was taken");
    cr_assert_eq(answer.n_rejects, 2);
    cr_expect_eq(answer.rejects[0].index, 0);
    cr_expect_str_eq(answer.rejects[0].detail, "/page: is missing");
    cr_expect_eq(answer.rejects[1].index, 4);
    cr_expect_str_eq(answer.rejects[1].detail, "a?b?", "nothing that moves a terminal's cursor");
}

Test(import_upload, no_more_rejects_are_taken_than_there_is_room_for)
{
    char body[8192] = "{\"errors\":[{\"index\":1}";
    size_t n = strlen(body);
    for (int i = 0; i < IMPORT_UPLOAD_REJECTS; i++) {
        n += (size_t)snprintf(body + n, sizeof(body) - n, ",{\"index\":2}");
    }
    (void)snprintf(body + n, sizeof(body) - n, "]}");
    cr_expect_eq(post(422, "", body), IMPORT_UPLOAD_ANSWERED);
    cr_expect_eq(answer.n_rejects, IMPORT_UPLOAD_REJECTS);
    cr_expect_eq(answer.rejects[0].index, 1);
    cr_expect_eq(answer.rejects[IMPORT_UPLOAD_REJECTS - 1].index, 2);
}

Test(import_upload, the_reason_is_one_printable_line)
{
    cr_expect_eq(
        post(503, "Retry-After: 7\r\n", "{\"title\":\"Not\\nnow\",\"detail\":\"\\u001b[31mred\"}"),
        IMPORT_UPLOAD_BUSY);
    cr_expect_str_eq(answer.detail, "the server answers 503 Not?now: ?[31mred");
    cr_expect_eq(answer.retry_after_s, 7);
}

Test(import_upload, an_answer_longer_than_any_of_tallyd_is_no_answer)
{
    size_t n = 300 * 1024;
    char *body = malloc(n + 1);
    cr_assert_not_null(body);
    memset(body, ' ', n);
    body[n] = '\0';
    cr_expect_eq(post(503, "", body), IMPORT_UPLOAD_IN_DOUBT);
    cr_expect_not_null(strstr(answer.detail, "longer than tallyd's ever are"), "%s", answer.detail);
    free(body);
}

Test(import_upload, without_an_answer_it_matters_whether_the_server_had_all)
{
    cr_expect_eq(post_answered(SCRIPTED_CLOSE), IMPORT_UPLOAD_IN_DOUBT);
    cr_expect_not_null(strstr(answer.detail, "no answer from http://127.0.0.1:"));
    cr_expect_eq(
        post_to("http://127.0.0.1:1", NULL, false), IMPORT_UPLOAD_UNREACHABLE, "nobody listens");
    cr_expect_eq(post_to("///", NULL, false), IMPORT_UPLOAD_UNREACHABLE, "no address at all");
}

Test(import_upload, what_is_sent)
{
    char *said = scripted_answer(202, "", "{\"accepted\":5,\"rejected\":0}");
    char *none = scripted_answer(202, "", "{\"accepted\":0,\"rejected\":0}");
    const char *const answers[] = {said, none};
    char url[128];
    scripted_http_start(answers, 2);
    (void)snprintf(url, sizeof(url), "%s/below//", scripted_http_url());
    struct import_upload *upload = import_upload_new(url, "secret", true);
    cr_assert_not_null(upload);
    cr_expect_eq(
        import_upload_post(upload, "key-1", SLICE(BODY), EVENTS, &answer), IMPORT_UPLOAD_ANSWERED);
    cr_expect_eq(
        import_upload_post(upload, "key-2", SLICE("[]"), 0, &answer), IMPORT_UPLOAD_ANSWERED);
    const struct scripted_request *first = scripted_http_request(0);
    cr_expect_eq(strncmp(first->head, "POST /below/events?bots=count HTTP/1.1\r\n", 40), 0, "%s",
        first->head);
    cr_expect_not_null(strstr(first->head, "\r\nAuthorization: Bearer secret\r\n"));
    cr_expect_not_null(strstr(first->head, "\r\nIdempotency-Key: key-1\r\n"));
    cr_expect_not_null(strstr(first->head, "\r\nContent-Type: application/x-ndjson\r\n"));
    cr_expect_null(strstr(first->head, "Expect:"));
    cr_expect_str_eq(first->body, BODY);
    const struct scripted_request *second = scripted_http_request(1);
    cr_expect_not_null(strstr(second->head, "\r\nIdempotency-Key: key-2\r\n"));
    cr_expect_not_null(strstr(second->head, "\r\nContent-Type: application/json\r\n"));
    cr_expect_str_eq(second->body, "[]");
    import_upload_free(upload);
    free(said);
    free(none);
}

/* The server has a while to answer yet: what it answers need not be sent again. */
Test(import_upload, a_post_ends_a_while_after_the_stop)
{
    const char *const answers[] = {SCRIPTED_SILENCE};
    static volatile sig_atomic_t stop = 1;
    scripted_http_start(answers, 1);
    struct import_upload *upload = import_upload_new(scripted_http_url(), NULL, false);
    cr_assert_not_null(upload);
    import_upload_stop_at(upload, &stop, 20);
    cr_expect_eq(import_upload_post(upload, "key", SLICE(BODY), EVENTS, &answer),
        IMPORT_UPLOAD_IN_DOUBT, "%s", answer.detail);
    import_upload_free(upload);
}

Test(import_upload, a_post_that_is_not_stopped_goes_on)
{
    char *said = scripted_answer(202, "", "{\"accepted\":5,\"rejected\":0}");
    const char *const answers[] = {said};
    static volatile sig_atomic_t stop = 0;
    scripted_http_start(answers, 1);
    struct import_upload *upload = import_upload_new(scripted_http_url(), NULL, false);
    cr_assert_not_null(upload);
    import_upload_stop_at(upload, &stop, 0);
    cr_expect_eq(import_upload_post(upload, "key", SLICE(BODY), EVENTS, &answer),
        IMPORT_UPLOAD_ANSWERED, "%s", answer.detail);
    import_upload_free(upload);
    free(said);
}

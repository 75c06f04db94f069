/* What an import makes of a row of answers: none of its events may count twice, or be taken for
 * counted. */
#include "service/client/import_send.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/scripted_http.h"

#define EVENTS 4
#define SCRIPT 8

static struct import_sender sender;
static struct import_report report;
static struct import_upload_answer answer;
static const char *script[SCRIPT];
static size_t n_script;

/* The server's next answer. */
static void says(int status, const char *headers, const char *body)
{
    cr_assert_lt(n_script, SCRIPT);
    script[n_script++] = scripted_answer(status, headers, body);
}

static void begin_sender(const char *url)
{
    sender.upload = import_upload_new(url, NULL, false);
    cr_assert_not_null(sender.upload);
    import_sender_begin(&sender);
}

static void setup(void)
{
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC); /* for what it says while it waits */
    cr_assert(quiet >= 0 && dup2(quiet, STDERR_FILENO) == STDERR_FILENO && close(quiet) == 0);
    import_report_init(&report);
    sender.batch = import_batch_new(NULL);
    cr_assert_not_null(sender.batch);
    for (uint64_t i = 1; i <= EVENTS; i++) {
        cr_assert(import_batch_add_json(sender.batch, SLICE("{\"page\":\"/\"}"), i));
    }
    sender.report = &report;
    sender.request_max = IMPORT_BATCH_EVENTS;
    scripted_http_start(script, SCRIPT);
}

static void teardown(void)
{
    import_upload_free(sender.upload);
    import_batch_free(sender.batch);
}

TestSuite(import_send, .init = setup, .fini = teardown, .timeout = 60);

static enum import_upload_result send_all(void)
{
    size_t count = 0;
    begin_sender(scripted_http_url());
    enum import_upload_result result = import_send(&sender, 0, EVENTS, true, &count, &answer);
    cr_expect_eq(count, EVENTS);
    return result;
}

static void expect_one_key(size_t n_requests)
{
    cr_assert_eq(scripted_http_requests(), n_requests);
    const char *first = strstr(scripted_http_request(0)->head, "Idempotency-Key: ");
    cr_assert_not_null(first);
    for (size_t i = 1; i < n_requests; i++) {
        const char *next = strstr(scripted_http_request(i)->head, "Idempotency-Key: ");
        cr_assert_not_null(next);
        cr_expect_eq(strncmp(first, next, strcspn(first, "\r")), 0, "request %zu", i);
    }
}

Test(import_send, a_replay_of_what_it_sent_itself_was_not_counted_before)
{
    script[n_script++] = SCRIPTED_CLOSE;
    says(202, "Idempotency-Replayed: true\r\n", "{\"accepted\":4,\"rejected\":0}");
    cr_expect_eq(send_all(), IMPORT_UPLOAD_ANSWERED);
    cr_expect_not(answer.replayed);
    expect_one_key(2);
}

/* The server may have counted the request of which no answer came. */
Test(import_send, what_is_in_doubt_stays_so_when_the_server_refuses_the_repeat)
{
    script[n_script++] = SCRIPTED_CLOSE;
    says(401, "", "{}");
    cr_expect_eq(send_all(), IMPORT_UPLOAD_IN_DOUBT);
    expect_one_key(2);
}

Test(import_send, what_was_refused_while_the_server_was_busy_is_not_in_doubt)
{
    says(503, "", "{}");
    says(401, "", "{}");
    cr_expect_eq(send_all(), IMPORT_UPLOAD_REFUSED);
    expect_one_key(2);
}

Test(import_send, a_server_that_was_never_there_is_not_waited_for)
{
    size_t count = 0;
    begin_sender("http://127.0.0.1:1");
    cr_expect_eq(import_send(&sender, 0, EVENTS, true, &count, &answer), IMPORT_UPLOAD_UNREACHABLE);
}

/* The server has rejected these two events, and forgets the request.  The mark that takes the
 * place of the request has no events: nothing of the file is in doubt with it. */
Test(import_send, a_mark_that_fails_leaves_no_event_in_doubt)
{
    size_t count = 0;
    says(422, "", "{\"errors\":[]}");
    script[n_script++] = SCRIPTED_CLOSE;
    says(401, "", "{}");
    begin_sender(scripted_http_url());
    cr_expect_eq(import_send(&sender, 0, EVENTS / 2, true, &count, &answer), IMPORT_UPLOAD_BUSY);
    cr_expect_eq(count, EVENTS / 2);
    cr_assert_eq(scripted_http_requests(), 3);
    cr_expect_eq(strncmp(scripted_http_request(1)->body, "[]", 2), 0);
    expect_one_key(3);
}

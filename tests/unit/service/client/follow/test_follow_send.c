/* A piece of a log counts once, whatever the server says: service/client/follow/follow_send.h */
#include "service/client/follow/follow_send.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/scripted_http.h"

#define EVENTS   4
#define SCRIPT   16
#define A_DAY_S  86400
#define AN_EVENT SLICE("{\"page\":\"/\"}")

static char base[] = "/tmp/tallyd-unit-XXXXXX";
static char path[PATH_MAX];
static struct import_options options = {.format = LOG_FORMAT_NDJSON};
static struct import_report report;
static struct import_lines lines;
static struct follow_store store;
static struct follow_state state;
static struct follow_sender sender;
static const char *script[SCRIPT];
static size_t n_script;

/* The server's next answer. */
static void says(int status, const char *headers, const char *body)
{
    cr_assert_lt(n_script, SCRIPT);
    script[n_script++] = scripted_answer(status, headers, body);
}

static void says_counted(size_t n)
{
    char body[64];
    (void)snprintf(body, sizeof(body), "{\"accepted\":%zu,\"rejected\":0}", n);
    says(202, "", body);
}

static void begin_sender(void)
{
    sender = (struct follow_sender){0};
    follow_sender_init(&sender, import_upload_new(scripted_http_url(), NULL, false), &lines, &store,
        &state, "a.log");
    cr_assert_not_null(sender.upload);
}

/* Four lines of ten bytes each lie in the batch. */
static void setup(void)
{
    bool is_new;
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC); /* for what it says while it waits */
    cr_assert(quiet >= 0 && dup2(quiet, STDERR_FILENO) == STDERR_FILENO && close(quiet) == 0);
    cr_assert_not_null(mkdtemp(base));
    (void)snprintf(path, sizeof(path), "%s/state", base);
    cr_assert(follow_store_open(&store, path, &state, &is_new), "%s", store.error);
    struct import_batch *batch = import_batch_new(NULL);
    cr_assert_not_null(batch);
    for (uint64_t i = 1; i <= EVENTS; i++) {
        cr_assert(import_batch_add_json(batch, AN_EVENT, i));
    }
    import_report_init(&report);
    import_lines_init(&lines, &options, batch, &report);
    state.n = 1;
    state.files[0] = (struct follow_file){.inode = 7, .place = {.header = -1}};
    scripted_http_start(script, SCRIPT);
    begin_sender();
}

static void teardown(void)
{
    follow_store_close(&store);
    import_batch_free(lines.batch);
    import_upload_free(sender.upload);
    (void)unlink(path);
    (void)rmdir(base);
}

TestSuite(follow_send, .init = setup, .fini = teardown, .timeout = 60);

static void cut(void)
{
    sender.cut = (struct follow_cut){.to = {.offset = 10 * EVENTS, .lines = EVENTS, .header = -1}};
    for (size_t i = 0; i < EVENTS; i++) {
        sender.cut.ends[i] =
            (struct follow_place){.offset = 10 * ((int64_t)i + 1), .lines = i + 1, .header = -1};
    }
    follow_sender_begin(&sender, 0, false);
}

/* The state has a piece of @n events that was sent @ago_s ago, by another process. */
static void left_in_doubt(size_t n, int64_t ago_s)
{
    state.has_piece = true;
    state.piece = (struct follow_piece){
        .to = {.offset = 10 * (int64_t)n}, .sent_at_s = (int64_t)time(NULL) - ago_s};
    import_upload_free(sender.upload);
    begin_sender();
}

static void expect_sent(size_t n_requests)
{
    cr_expect_eq(scripted_http_requests(), n_requests, "%zu", scripted_http_requests());
    cr_expect_eq(state.files[0].place.offset, 10 * EVENTS);
    cr_expect_eq(state.files[0].place.lines, EVENTS);
    cr_expect_not(state.has_piece);
    cr_expect_not(sender.is_sending);
}

/* What the server does not count must be there still when a process starts again. */
static void expect_kept(bool in_doubt)
{
    cr_expect_eq(state.files[0].place.offset, 0);
    cr_expect(state.has_piece);
    cr_expect_eq(state.piece.sent_at_s != 0, in_doubt);
}

Test(follow_send, bytes_without_an_event_are_dealt_with_at_once)
{
    import_batch_clear(lines.batch);
    sender.cut =
        (struct follow_cut){.to = {.offset = 33, .lines = 3, .header = 11, .in_long_line = true}};
    follow_sender_begin(&sender, 0, false);
    cr_expect_not(sender.is_sending);
    cr_expect_eq(state.files[0].place.offset, 33);
    cr_expect_eq(state.files[0].place.lines, 3);
    cr_expect_eq(state.files[0].place.header, 11);
    cr_expect(state.files[0].place.in_long_line);
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_ALL);
    cr_expect_eq(scripted_http_requests(), 0);
}

Test(follow_send, what_is_too_large_is_cut_in_two)
{
    says(413, "", "{}");
    says_counted(2);
    says_counted(2);
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_ALL);
    expect_sent(3);
    cr_expect_eq(report.accepted, EVENTS);
}

/* A header at byte 5, and another one at byte 25. */
Test(follow_send, each_piece_knows_the_header_before_its_end)
{
    sender.request_max = 2;
    says_counted(2);
    says(503, "", "{}");
    cut();
    sender.cut.to.header = 25;
    for (size_t i = 0; i < EVENTS; i++) {
        sender.cut.ends[i].header = i < 2 ? 5 : 25;
    }
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_WAIT);
    cr_expect_eq(state.files[0].place.offset, 20);
    cr_expect_eq(state.files[0].place.header, 5);
    cr_expect_eq(state.piece.to.header, 25);
}

Test(follow_send, an_event_too_large_by_itself_is_rejected)
{
    sender.request_max = 1;
    says(413, "", "{}");
    says_counted(1);
    says(422, "", "{\"errors\":[{\"index\":0,\"detail\":\"is bad\"}]}");
    says(422, "", "{}");
    says(422, "", "{}"); /* not only asked before: to the question, too */
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_ALL);
    expect_sent(5);
    cr_expect_eq(report.rejected, 2);
    cr_expect_eq(report.accepted, 1);
    cr_expect_eq(report.before, 1, "its key stands for what another follower sent");
}

Test(follow_send, waits_double_up_to_a_bound_and_the_server_may_name_them)
{
    static const int64_t waits_ms[] = {250, 500, 1000, 2000, 4000, 8000};
    for (size_t i = 0; i < 6; i++) {
        says(503, "", "{}");
    }
    says(503, "Retry-After: 20\r\n", "{}");
    says(429, "Retry-After: 100000\r\n", "{}");
    cut();
    for (size_t i = 0; i < 6; i++) {
        cr_expect_eq(follow_sender_try(&sender, 1000), FOLLOW_SENT_WAIT);
        cr_expect_eq(sender.try_at_ms, 1000 + waits_ms[i], "%zu", i);
        expect_kept(false);
    }
    cr_expect_eq(follow_sender_try(&sender, 1000), FOLLOW_SENT_WAIT);
    cr_expect_eq(sender.try_at_ms, 21000);
    cr_expect_eq(follow_sender_try(&sender, 1000), FOLLOW_SENT_WAIT);
    cr_expect_eq(sender.try_at_ms, 601000, "a server cannot silence a follower for ever");
}

/* A server that was busy once is not waited for longer the next time. */
Test(follow_send, waits_begin_anew_behind_an_answer)
{
    sender.request_max = 2;
    says(503, "", "{}");
    says(503, "", "{}");
    says_counted(2);
    says(503, "", "{}");
    cut();
    cr_expect_eq(follow_sender_try(&sender, 1000), FOLLOW_SENT_WAIT);
    cr_expect_eq(follow_sender_try(&sender, 1000), FOLLOW_SENT_WAIT);
    cr_expect_eq(sender.try_at_ms, 1500);
    cr_expect_eq(follow_sender_try(&sender, 2000), FOLLOW_SENT_WAIT);
    cr_expect_eq(state.files[0].place.offset, 20, "the first piece is counted");
    cr_expect_eq(sender.try_at_ms, 2250);
}

/* Without an answer the piece may be counted.  The repeat has the same key, and a replay of what
 * this process sent itself is no count of another one. */
Test(follow_send, a_piece_in_doubt_is_sent_again_with_its_key)
{
    script[n_script++] = SCRIPTED_CLOSE;
    says(202, "Idempotency-Replayed: true\r\n", "{\"accepted\":4,\"rejected\":0}");
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_WAIT);
    expect_kept(true);
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_ALL);
    expect_sent(2);
    cr_expect_eq(report.accepted, EVENTS);
    cr_expect_eq(report.before, 0);
    const char *keys[2];
    for (size_t i = 0; i < 2; i++) {
        keys[i] = strstr(scripted_http_request(i)->head, "Idempotency-Key: ");
        cr_assert_not_null(keys[i]);
    }
    cr_expect_eq(strncmp(keys[0], keys[1], strcspn(keys[0], "\r")), 0);
}

Test(follow_send, a_replay_of_another_process_counted_before)
{
    left_in_doubt(EVENTS, 60);
    says(202, "Idempotency-Replayed: true\r\n", "{\"accepted\":4,\"rejected\":0}");
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_ALL);
    expect_sent(1);
    cr_expect_eq(report.before, EVENTS);
    cr_expect_eq(report.accepted, 0);
}

Test(follow_send, a_refusal_stops_and_keeps_the_piece)
{
    says(401, "", "{\"title\":\"Unauthorized\"}");
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_STOP);
    expect_kept(false);
}

Test(follow_send, nothing_is_sent_that_is_not_on_the_disk)
{
    cr_assert(unlink(path) == 0 && rmdir(base) == 0);
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_STOP);
    cr_expect_eq(scripted_http_requests(), 0);
    cr_expect_eq(state.files[0].place.offset, 0);
}

Test(follow_send, a_piece_of_yesterday_is_in_doubt_for_good)
{
    left_in_doubt(2, A_DAY_S);
    says_counted(2);
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_ALL);
    expect_sent(1);
    cr_expect_eq(report.in_doubt, 2);
    cr_expect_eq(report.accepted, 2);
}

/* A server that takes fewer events than before, and a piece that may be counted: its key is asked
 * before it is cut. */
Test(follow_send, a_piece_in_doubt_that_became_too_large)
{
    static const struct {
        int status;
        enum follow_sent sent;
        uint64_t before, accepted;
    } cases[] = {
        {202, FOLLOW_SENT_ALL, 0, EVENTS}, /* not counted: it is cut */
        {422, FOLLOW_SENT_ALL, EVENTS, 0}, /* counted */
        {503, FOLLOW_SENT_WAIT, 0, 0}, {504, FOLLOW_SENT_WAIT, 0, 0}, {401, FOLLOW_SENT_STOP, 0, 0},
        {413, FOLLOW_SENT_STOP, 0, 0}, /* not even an empty list */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        import_report_init(&report);
        import_batch_clear(lines.batch);
        for (uint64_t k = 1; k <= EVENTS; k++) {
            cr_assert(import_batch_add_json(lines.batch, AN_EVENT, k));
        }
        state.files[0] = (struct follow_file){.inode = 7, .place = {.header = -1}};
        left_in_doubt(EVENTS, 60);
        n_script = 0;
        scripted_http_start(script, SCRIPT);
        says(413, "", "{}");
        says(
            cases[i].status, "", cases[i].status == 202 ? "{\"accepted\":0,\"rejected\":0}" : "{}");
        says_counted(2);
        says_counted(2);
        cut();
        cr_expect_eq(follow_sender_try(&sender, 0), cases[i].sent, "%d", cases[i].status);
        cr_expect_eq(report.before, cases[i].before, "%d", cases[i].status);
        cr_expect_eq(report.accepted, cases[i].accepted, "%d", cases[i].status);
        if (cases[i].sent != FOLLOW_SENT_ALL) {
            expect_kept(true);
        }
    }
}

/* The answer to a question was lost, and the server takes the piece again: its key has the empty
 * list, and that is no count. */
Test(follow_send, a_key_that_was_only_asked)
{
    says(500, "", "{}");
    says(413, "", "{}");
    script[n_script++] = SCRIPTED_CLOSE;
    says(422, "", "{}");
    says(202, "Idempotency-Replayed: true\r\n", "{\"accepted\":0,\"rejected\":0}");
    says_counted(EVENTS);
    cut();
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_WAIT);
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_WAIT);
    expect_kept(true);
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_ALL);
    expect_sent(6);
    cr_expect_eq(report.accepted, EVENTS);
    cr_expect_eq(report.before, 0);
    const char *asked = strstr(scripted_http_request(4)->head, "Idempotency-Key: ");
    const char *sent = strstr(scripted_http_request(5)->head, "Idempotency-Key: ");
    cr_assert(asked != NULL && sent != NULL);
    cr_expect_neq(strncmp(asked, sent, strcspn(asked, "\r")), 0);
}

/* Something between refuses the body as the server refuses a used key, whatever the key. */
Test(follow_send, a_body_that_is_refused_under_each_key)
{
    cut();
    for (unsigned i = 0; i < 8; i++) {
        says(422, "", "{}");
        says(202, "", "{\"accepted\":0,\"rejected\":0}");
    }
    cr_expect_eq(follow_sender_try(&sender, 0), FOLLOW_SENT_STOP);
    cr_expect_eq(scripted_http_requests(), 16u);
    expect_kept(false);
}

/* The piece's bytes are not there any more: only its key can tell. */
Test(follow_send, a_piece_whose_bytes_are_gone)
{
    static const struct {
        int status;
        enum follow_sent sent;
        int64_t offset;
    } cases[] = {
        {202, FOLLOW_SENT_ALL, 0},
        {422, FOLLOW_SENT_ALL, 20},
        {503, FOLLOW_SENT_WAIT, 0},
        {500, FOLLOW_SENT_WAIT, 0},
        {403, FOLLOW_SENT_STOP, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        state.files[0] = (struct follow_file){.inode = 7, .place = {.header = -1}};
        left_in_doubt(2, 60);
        state.piece.to.lines = 2;
        state.piece.to.header = 5;
        n_script = 0;
        scripted_http_start(script, SCRIPT);
        says(
            cases[i].status, "", cases[i].status == 202 ? "{\"accepted\":0,\"rejected\":0}" : "{}");
        cr_expect_eq(follow_sender_resolve(&sender, 0), cases[i].sent, "%d", cases[i].status);
        cr_expect_eq(state.files[0].place.offset, cases[i].offset, "%d", cases[i].status);
        cr_expect_eq(state.files[0].place.header, cases[i].offset == 20 ? 5 : -1);
        cr_expect_eq(state.files[0].place.lines, cases[i].offset == 20 ? 2u : 0u);
        cr_expect_eq(state.has_piece, cases[i].sent != FOLLOW_SENT_ALL, "%d", cases[i].status);
    }
}

Test(follow_send, bytes_that_are_gone_and_were_never_sent_or_long_ago)
{
    size_t before = scripted_http_requests();
    left_in_doubt(2, A_DAY_S);
    cr_expect_eq(follow_sender_resolve(&sender, 0), FOLLOW_SENT_ALL);
    cr_expect_eq(state.files[0].place.offset, 20, "as if counted: no event counts twice");
    state.files[0].place.offset = 0;
    left_in_doubt(2, 0);
    state.piece.sent_at_s = 0;
    import_upload_free(sender.upload);
    begin_sender();
    cr_expect_eq(follow_sender_resolve(&sender, 0), FOLLOW_SENT_ALL);
    cr_expect_eq(state.files[0].place.offset, 0);
    cr_expect_not(state.has_piece);
    cr_expect_eq(scripted_http_requests(), before);
}

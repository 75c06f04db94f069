/* questions.c - each endpoint with every single allocation failing once.
 *
 *	questions [STEP]
 *
 * For each question, and for n = 1, 1 + STEP, ..: the n-th allocation from its arrival on fails, in
 * another round that one and a dozen behind it.  The answer must be what it is with memory enough,
 * byte for byte, or an honest 503; asked once more it must be the right one; and nothing may be
 * left when the service is closed.  What changes something is judged by its status.
 * The last line says what was found; the status is 1 if anything was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/oom/failing_alloc.h"
#include "tests/oom/service.h"

#define ANSWER_MAX (256 * 1024)
#define ROUNDS_MAX 3000
#define WHILE      12 /* allocations that fail together, in every other round */

/* Windows that are over, so that answers are the same whenever they are asked for. */
#define OVER  "from=now-3d/d&to=now-1h/h"
#define DATES "from=now-5d/d&to=now/d"

struct question {
    const char *method, *target,
        *body;   /* "%s" in the target: the date of the day before yesterday */
    bool varies; /* the answer's text is another each time */
};

static const struct question questions[] = {
    {"GET", "/uv?" OVER, NULL, false},
    {"GET", "/uv?page=/a&page=/b&explain=1&" OVER, NULL, false},
    {"GET", "/stats?step=1h&tz=Europe/Berlin&" OVER, NULL, false},
    {"GET", "/visits?step=1d&" OVER, NULL, false},
    {"GET", "/pv?pageset=set&" OVER, NULL, false},
    {"GET", "/ips?round=outer&" OVER, NULL, false},
    {"GET", "/uv?form=now", NULL, false},
    {"GET", "/pages?limit=3&prefix=/&" OVER, NULL, false},
    {"GET", "/pages?by=uv&" OVER, NULL, false},
    {"GET", "/overlap?page=/a&page=/b&" OVER, NULL, false},
    {"GET", "/breakdown?by=event&step=1d&" OVER, NULL, false},
    {"GET", "/breakdown?by=browser&" OVER, NULL, false},
    {"GET", "/breakdown?by=source&metric=uv&" OVER, NULL, false},
    {"GET", "/pv?event=e1&event=e2&" OVER, NULL, false}, /* with at_most: there is a cap */
    {"GET", "/overlap?event=e1&page=/a&" OVER, NULL, false},
    {"GET", "/overlap?page=/a&page=/b&from2=now-4d/d&to2=now-3d/d&" OVER, NULL, false},
    {"GET", "/pagesets/set", NULL, false},
    {"GET", "/sites", NULL, false},
    {"GET", "/sites?" OVER, NULL, true}, /* `now` is of the last minutes */
    {"GET", "/sites/default", NULL, false},
    {"GET", "/sites/none", NULL, false},
    {"GET", "/cluster", NULL, true},
    {"GET", "/hotkeys", NULL, true},
    {"GET", "/rollup", NULL, true},
    {"GET", "/dau?" DATES, NULL, false},
    {"GET", "/active?match=all&action=active&action=a&" DATES, NULL, false},
    {"GET", "/active/users?limit=2&" DATES, NULL, false},
    {"GET", "/retention?cohort=%s&days=2", NULL, false},
    {"GET", "/retention?cohort=%s&days=1&cohorts=2", NULL, false},
    {"GET", "/retention?cohort=%s&days=2&action=a&return=active&new_within=3d", NULL, false},
    {"GET", "/dau?new_within=3d&" DATES, NULL, false},
    {"GET", "/funnel?step=active&step=a&" DATES, NULL, false},
    {"GET", "/frequency?" DATES, NULL, false},
    {"GET", "/active/users?min_days=2&" DATES, NULL, false},
    {"GET", "/users/u1/activity?" DATES, NULL, false},
    {"GET", "/seen?user=u1&page=/a", NULL, false},
    {"POST", "/seen", "{\"user\":\"u1\",\"pages\":[\"/a\",\"/never\"]}", false},
    {"GET", "/filters/f", NULL, false},
    {"POST", "/filters/f/check", "{\"items\":[\"x\",\"y\"]}", false},
    {"POST", "/filters/f/add", "{\"items\":[\"x\"]}", true},
    {"PUT", "/filters/f", "{\"capacity\":1000,\"error_rate\":0.01}", true},
    {"PUT", "/pagesets/other", "{\"pages\":[\"/a\",\"/c\"]}", true},
    {"DELETE", "/pagesets/none", NULL, true},
    {"DELETE", "/users/nobody", NULL, true},
    {"DELETE", "/users/nobody/activity?action=a&date=%s", NULL, true},
    {"DELETE", "/sites/goes", NULL, true}, /* it begins, and is asked for again */
    {"DELETE", "/pages?page=/never", NULL, true},
    {"POST", "/ratelimit",
        "{\"key\":\"k\",\"algorithm\":\"funnel\",\"limit\":1000000,\"period_s\":1}", true},
    {"DELETE", "/ratelimit?key=k", NULL, true},
    {"POST", "/api/event", "{\"n\":\"pageview\",\"u\":\"https://x.example/p\",\"d\":\"x.example\"}",
        true},
    {"POST", "/v1/batch",
        "{\"batch\":[{\"type\":\"page\",\"messageId\":\"m\",\"anonymousId\":\"a\",\"properties\":{"
        "\"path\":\"/"
        "s\"}},{\"type\":\"track\",\"event\":\"e\",\"messageId\":\"n\",\"userId\":\"u\"}]}",
        true},
    {"POST", "/events?first=1", "{\"user\":\"first\",\"actions\":[\"a\"]}", true},
    {"POST", "/grafana/search", "{\"target\":\"sites\"}", false},
    {"POST", "/grafana/variable", "{\"payload\":{\"target\":\"pages\"}}", false},
    {"POST", "/grafana/metric-payload-options",
        "{\"metric\":\"uv\",\"payload\":{},\"name\":\"page\"}", false},
    {"POST", "/grafana/query",
        "{\"range\":{\"from\":\"now-3d/d\",\"to\":\"now-1h/h\"},\"intervalMs\":3600000,"
        "\"maxDataPoints\":100,\"targets\":[{\"refId\":\"A\",\"target\":\"pv\"},"
        "{\"refId\":\"B\",\"target\":\"dau\",\"payload\":{\"site\":\"default\"}}]}",
        false},
};

/* Of those that remember something for the next one. */
static const struct question first_questions[] = {
    {"POST", "/ratelimit",
        "{\"key\":\"k\",\"algorithm\":\"funnel\",\"limit\":1000000,\"period_s\":1}", true},
    {"POST", "/ratelimit",
        "{\"key\":\"k\",\"algorithm\":\"sliding\",\"limit\":10000,\"period_s\":1}", true},
    {"DELETE", "/ratelimit?key=k", NULL, true},
};

struct bench {
    struct service service;
    unsigned rounds, faults, refused, silent;
    char right[ANSWER_MAX], answer[ANSWER_MAX];
};

static int ask(struct bench *b, const struct question *q, char *answer)
{
    char head[1024];
    size_t n = q->body == NULL ? 0 : strlen(q->body);
    const char *rest = strstr(q->target, "%s");
    char date[16] = "";
    time_t then = time(NULL) - 2 * 86400;
    struct tm day;
    if (rest != NULL) {
        (void)strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&then, &day));
    }
    (void)snprintf(head, sizeof(head),
        "%s %.*s%s%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: "
        "x\r\n%sContent-Length: "
        "%zu\r\n\r\n",
        q->method, (int)(rest == NULL ? strlen(q->target) : (size_t)(rest - q->target)), q->target,
        date, rest == NULL ? "" : rest + 2, n > 0 ? "Content-Type: application/json\r\n" : "", n);
    return service_ask(&b->service, head, q->body, n, answer, ANSWER_MAX);
}

static const char *text_of(const char *answer)
{
    const char *text = strstr(answer, "\r\n\r\n");
    return text == NULL ? "" : text + 4;
}

static void found(struct bench *b, const struct question *q, unsigned long n, const char *what)
{
    b->faults++;
    printf("%s %s, allocation %lu: %s\n", q->method, q->target, n, what);
}

static bool is_right(const struct bench *b, const struct question *q, int right, int status)
{
    bool good = status == right || (q->varies && status / 100 == right / 100);
    /* a problem may say less than it would with memory enough */
    return good &&
           (q->varies || status >= 400 || strcmp(text_of(b->right), text_of(b->answer)) == 0);
}

/* True if an allocation failed. */
static bool round_of(
    struct bench *b, const struct question *q, int right, unsigned long n, unsigned long more)
{
    char what[512];
    b->rounds++;
    alloc_fail(n, more);
    int status = ask(b, q, b->answer);
    bool struck = alloc_stop();
    bool changes = strcmp(q->method, "GET") != 0; /* then it may be sent and not answered for */
    b->refused += status == 503;
    b->silent += status == 0;
    if (status != 503 && status != 0 && !(changes && status == 504) &&
        !is_right(b, q, right, status)) {
        (void)snprintf(what, sizeof(what), "answered %d: %.300s", status, text_of(b->answer));
        found(b, q, n, what);
    }
    for (int i = 0; i < 500; i++) { /* a connection to Redis may have to come back */
        status = ask(b, q, b->answer);
        if (status != 503) {
            break;
        }
        service_wait_ms(10);
    }
    if (!is_right(b, q, right, status)) {
        (void)snprintf(what, sizeof(what), "then answered %d: %.300s", status, text_of(b->answer));
        found(b, q, n, what);
    }
    return struck;
}

static void try_question(struct bench *b, const struct question *q, unsigned step)
{
    unsigned long n = 1, number = 0;
    size_t size = 0;
    bool struck = true;
    alloc_watch();
    service_open(&b->service);
    (void)ask(b, q, b->right); /* what is done the first time only */
    int right = ask(b, q, b->right);
    if (right == 0 || right / 100 == 5) {
        found(b, q, 0, b->right);
        struck = false;
    }
    for (unsigned i = 0; struck && i < ROUNDS_MAX; i++) {
        struck = round_of(b, q, right, n, 0);
        if (i % 2 == 0) {
            (void)round_of(b, q, right, n, WHILE);
        }
        n += struck ? step : 0;
    }
    service_close(&b->service);
    size_t left = alloc_left(&number, &size);
    if (left > 0) {
        char what[128];
        (void)snprintf(what, sizeof(what), "%zu blocks are left, one of %zu bytes, number %lu",
            left, size, number);
        found(b, q, n, what);
    }
    printf("%3d %-6s %-70s %lu allocations\n", right, q->method, q->target, n - 1);
    if (struck || n < 2) {
        found(b, q, n, "too many or too few allocations: nothing was tested");
    }
}

/* As above, each time to a process that has just begun: what is done the first time only, too. */
static void try_first(struct bench *b, const struct question *q, unsigned step)
{
    unsigned long n = 1;
    bool struck = true;
    for (unsigned i = 0; struck && i < ROUNDS_MAX; i++, n += step) {
        service_open(&b->service);
        struck = round_of(b, q, 200, n, 0);
        service_close(&b->service);
    }
    printf("200 %-6s %-70s %lu allocations, the first time\n", q->method, q->target, n - step);
}

/* Something to be asked for: events of four days, two sites, a page set, a filter. */
static void fill(struct bench *b)
{
    static char body[SERVICE_BODY_MAX];
    size_t n = 0;
    int64_t now_s = storage_now_ms(b->service.app.storage) / 1000;
    for (int i = 0; i < 400; i++) {
        n += (size_t)snprintf(body + n, sizeof(body) - n,
            "%s{\"page\":\"/"
            "%c\",\"user\":\"u%d\",\"ip\":\"10.0.0.%d\",\"actions\":[\"a\"],\"ts\":%lld,"
            "\"utm_source\":\"s%d\",\"ua\":\"Mozilla/5.0 Firefox/120.0\"},"
            "{\"event\":\"e%d\",\"visitor\":\"v%d\",\"ts\":%lld}",
            i == 0 ? "[{\"site\":\"goes\",\"page\":\"/\",\"user\":\"u\"}," : ",", 'a' + i % 5,
            i % 37, i % 250, (long long)(now_s - 900 * i), i % 9, i % 20, i % 37,
            (long long)(now_s - 7200 - 900 * (i / 20)));
    }
    (void)snprintf(body + n, sizeof(body) - n, "]");
    const struct question first[] = {{"POST", "/events", body, true},
        {"PUT", "/pagesets/set", "{\"pages\":[\"/a\",\"/c\"]}", true},
        {"PUT", "/filters/f", "{\"capacity\":1000,\"error_rate\":0.01}", true},
        {"POST", "/filters/f/add", "{\"items\":[\"x\"]}", true}};
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        int status = ask(b, &first[i], b->answer);
        if (status / 100 != 2) {
            fprintf(stderr, "%s: %d %s\n", first[i].target, status, b->answer);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (step < 1) {
        fprintf(stderr, "usage: questions [STEP]\n");
        return 2;
    }
    b.service.max_names = 8; /* fewer than fill() has */
    service_start_redis(&b.service, REDIS_FSYNC_EVERYSEC);
    service_open(&b.service);
    fill(&b);
    service_close(&b.service);
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        try_question(&b, &questions[i], (unsigned)step);
    }
    for (size_t i = 0; i < sizeof(first_questions) / sizeof(first_questions[0]); i++) {
        try_first(&b, &first_questions[i], (unsigned)step);
    }
    service_stop_redis(&b.service);
    printf("out of memory: %u rounds, %u answered 503, %u without an answer, %u faults\n", b.rounds,
        b.refused, b.silent, b.faults);
    return b.faults == 0 ? 0 : 1;
}

/* post_events.c - POST /events with every single allocation failing once.
 *
 *	post_events [STEP]
 *
 * For each kind of request, and for n = 1, 1 + STEP, ..: a fresh service (HTTP server, handlers,
 * storage) on a real Redis; the n-th allocation from the request's arrival on fails, in another
 * round all from there on for a while; the request is sent.  It must be answered, 202 or an honest
 * 503 (and with a key it must then pass), its events counted as the answer says, and nothing may be
 * left when the service is closed.  Done when the request makes fewer than n allocations.
 * The last line says what was found; the status is 1 if anything was.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "handlers/app.h"
#include "handlers/routes.h"
#include "service/http_server.h"
#include "service/process.h"
#include "service/redis_child.h"
#include "storage/clock.h"
#include "tests/oom/failing_alloc.h"

#define BODY_MAX   (1024 * 1024)
#define ROUNDS_MAX 2000
#define WHILE      12 /* allocations that fail together, in every other round */

struct kind {
    const char *name, *type, *query;
    unsigned events, rejects;
    bool keyed, late;
};

static const struct kind kinds[] = {
    {"one event", "application/json", "", 1, 0, false, false},
    {"an array with faults", "application/json", "", 40, 7, false, false},
    {"a large NDJSON", "application/x-ndjson", "?strict=0", 3000, 0, false, false},
    {"late events", "application/json", "", 60, 0, false, true},
    {"one event with a key", "application/json", "", 1, 0, true, false},
    {"an array with faults and a key", "application/json", "", 40, 7, true, false},
    {"a large NDJSON with a key", "application/x-ndjson", "", 3000, 0, true, true},
};

struct bench {
    struct redis_child *redis;
    struct app app;
    struct app_stats stats;
    struct http_server *server;
    char *body;
    size_t body_n;
    char page[64];
    unsigned rounds, faults, refused, silent;
};

/* The body of an answer becomes the HTTP library's. */
struct MHD_Response *__real_MHD_create_response_from_buffer(size_t n, void *buffer, int mode);
struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t n, void *buffer, int mode);
struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t n, void *buffer, int mode)
{
    alloc_handed_over(buffer);
    return __real_MHD_create_response_from_buffer(n, buffer, mode);
}

static void submit(void *data, struct storage_job *job)
{
    storage_submit(data, job);
}

static int64_t now_ms(void *data)
{
    return storage_now_ms(data);
}

static void wait_ms(int64_t ms)
{
    (void)nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void found(struct bench *b, const struct kind *kind, unsigned long n, const char *what)
{
    b->faults++;
    printf("%s, allocation %lu: %s\n", kind->name, n, what);
}

/* ---- the service ---- */

static bool open_service(struct bench *b)
{
    const char *error = NULL;
    struct storage_config config = {
        .redis_url = redis_child_url(b->redis),
        .partitions = 16,
        .retention = {.keep_s = {172800, 5356800, 95040000, KEEP_FOREVER}},
        .visit_timeout_s = 1800,
        .rotation = ROTATE_NEVER,
        .queue_events = 100000,
        .readers = 1,
        .lead = false,
    };
    b->app = (struct app){.storage = storage_open(&config, &error),
        .max_events = 10000,
        .max_future_s = 300,
        .stats = &b->stats};
    if (b->app.storage == NULL) {
        return false;
    }
    for (int i = 0; i < 2000 && atomic_load(&storage_stats(b->app.storage)->redis_connected) == 0;
         i++) {
        wait_ms(1);
    }
    struct http_server_config http = {
        .host = "127.0.0.1",
        .threads = 1,
        .max_connections = 16,
        .max_body = BODY_MAX,
        .max_body_memory = 4 * BODY_MAX,
        .request_timeout_ms = 5000,
        .idle_timeout_ms = 5000,
        .app = &b->app,
        .routes = api_routes,
        .n_routes = n_api_routes,
        .submit = submit,
        .now_ms = now_ms,
        .storage = b->app.storage,
    };
    b->server = http_server_start(&http, &error);
    return b->server != NULL && storage_now_ms(b->app.storage) > 0;
}

static void close_service(struct bench *b)
{
    if (b->server != NULL) {
        http_server_quiesce(b->server);
    }
    if (b->app.storage != NULL) {
        storage_drain(b->app.storage, monotonic_ms() + 5000);
    }
    http_server_stop(b->server, 1000);
    storage_close(b->app.storage);
    b->server = NULL;
    b->app.storage = NULL;
}

/* ---- requests ---- */

static void send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        p += sent;
        n -= (size_t)sent;
    }
}

/* The status of the answer, its text in @answer; 0 without one. */
static int ask(struct bench *b, const char *head, size_t body_n, char *answer, size_t answer_n)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons(http_server_port(b->server)),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 10};
    size_t n = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        perror("connect");
        exit(2);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    send_all(fd, head, strlen(head));
    send_all(fd, b->body, body_n);
    for (ssize_t more = 1; more > 0 && n < answer_n - 1;) {
        more = recv(fd, answer + n, answer_n - 1 - n, 0);
        n += more > 0 ? (size_t)more : 0;
    }
    answer[n] = '\0';
    (void)close(fd);
    return n > 12 && strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static int post(struct bench *b, const struct kind *kind, const char *key)
{
    char head[512];
    char answer[65536];
    (void)snprintf(head, sizeof(head),
        "POST /events%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\n%s%s%s"
        "Content-Length: %zu\r\n\r\n",
        kind->query, kind->type, key != NULL ? "Idempotency-Key: " : "", key != NULL ? key : "",
        key != NULL ? "\r\n" : "", b->body_n);
    return ask(b, head, b->body_n, answer, sizeof(answer));
}

/* Page views of the round's page; -1 if that could not be asked. */
static long counted(struct bench *b)
{
    char head[512];
    char answer[65536];
    (void)snprintf(head, sizeof(head),
        "GET /pv?page=%s&from=now-20d/h HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b->page);
    int status = 0;
    for (int i = 0; status != 200 && i < 500; i++) { /* its own connection may have to come back */
        if (i > 0) {
            wait_ms(10);
        }
        status = ask(b, head, 0, answer, sizeof(answer));
    }
    const char *pv = strstr(answer, "\"pv\":");
    return status == 200 && pv != NULL ? strtol(pv + 5, NULL, 10) : -1;
}

static void put(struct bench *b, const char *text)
{
    size_t n = strlen(text);
    memcpy(b->body + b->body_n, text, n);
    b->body_n += n;
}

static void make_body(struct bench *b, const struct kind *kind, int64_t now_s)
{
    bool lines = strcmp(kind->type, "application/x-ndjson") == 0;
    char text[256];
    b->body_n = 0;
    put(b, lines ? "" : "[");
    for (unsigned i = 0; i < kind->events + kind->rejects; i++) {
        put(b, i == 0 ? "" : lines ? "\n" : ",");
        if (i < kind->rejects) {
            put(b, "{\"page\":\"\"}");
            continue;
        }
        (void)snprintf(text, sizeof(text),
            "{\"page\":\"%s\",\"user\":\"u%u\",\"ip\":\"10.0.%u.%u\",\"actions\":[\"a\"],\"ts\":%"
            "lld}",
            b->page, i, i / 256 % 256, i % 256,
            (long long)(kind->late ? now_s - 86400 * (i % 19) : now_s));
        put(b, text);
    }
    put(b, lines ? "" : "]");
}

/* ---- rounds ---- */

static void judge(struct bench *b, const struct kind *kind, unsigned long n, int status, long is)
{
    char what[128];
    long all = (long)kind->events;
    /* 504: reconnecting took too long, as that needs memory as well */
    bool right = (status == 202 && is == all) || (status == 503 && is == 0) ||
                 (status == 504 && is >= 0 && is <= all) || (status == 0 && (is == 0 || is == all));
    b->refused += status == 503;
    b->silent += status == 0;
    if (!right) {
        (void)snprintf(what, sizeof(what), "answered %d, %ld of %ld counted", status, is, all);
        found(b, kind, n, what);
    }
}

/* True if an allocation failed. */
static bool round_of(struct bench *b, const struct kind *kind, unsigned long n, unsigned long more)
{
    char key[64];
    unsigned long number = 0;
    size_t size = 0;
    b->rounds++;
    (void)snprintf(b->page, sizeof(b->page), "/p%u", b->rounds);
    (void)snprintf(key, sizeof(key), "key-%u", b->rounds);
    alloc_watch();
    if (!open_service(b)) {
        fprintf(stderr, "the service does not start\n");
        exit(2);
    }
    make_body(b, kind, storage_now_ms(b->app.storage) / 1000);
    alloc_fail(n, more);
    int status = post(b, kind, kind->keyed ? key : NULL);
    bool struck = alloc_stop();
    long is = counted(b);
    judge(b, kind, n, status, is);
    for (int i = 0; kind->keyed && status != 202 && i < 1000; i++) {
        status = post(b, kind, key); /* 409 until the lease of one that got a 504 is over */
        if (status != 202) {
            wait_ms(10);
        }
    }
    if (kind->keyed && (post(b, kind, key) != 202 || counted(b) != (long)kind->events)) {
        found(b, kind, n, "the request is not repeated as it should");
    }
    close_service(b);
    size_t left = alloc_left(&number, &size);
    if (left > 0) {
        char what[128];
        (void)snprintf(what, sizeof(what), "%zu blocks are left, one of %zu bytes, number %lu",
            left, size, number);
        found(b, kind, n, what);
    }
    return struck;
}

static void run(struct bench *b, unsigned step)
{
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        unsigned long n = 1;
        bool struck = true;
        for (unsigned i = 0; struck && i < ROUNDS_MAX; i++) {
            struck = round_of(b, &kinds[k], n, 0);
            if (i % 2 == 0) {
                (void)round_of(b, &kinds[k], n, WHILE);
            }
            n += struck ? step : 0;
        }
        printf("%-32s %lu allocations\n", kinds[k].name, n - 1);
        if (struck || n < 5) {
            found(b, &kinds[k], n, "too many or too few allocations: nothing was tested");
        }
    }
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/tallyd-oom-XXXXXX";
    char error[REDIS_CHILD_TEXT];
    struct redis_child_report report;
    struct bench b = {.body = malloc(BODY_MAX)};
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (step < 1 || b.body == NULL || mkdtemp(directory) == NULL) {
        fprintf(stderr, "usage: post_events [STEP]\n");
        return 2;
    }
    json_set_alloc_funcs(failing_malloc, failing_free);
    struct redis_child_config config = {.data_dir = directory,
        .server = "redis-server",
        .maxmemory = INT64_C(1) << 30,
        .fsync = REDIS_FSYNC_EVERYSEC};
    b.redis = redis_child_open(&config, error);
    if (b.redis == NULL || !redis_child_start(b.redis, monotonic_ms(), &report)) {
        fprintf(stderr, "Redis does not start: %s\n", b.redis == NULL ? error : report.text);
        return 2;
    }
    run(&b, (unsigned)step);
    redis_child_stop(b.redis, monotonic_ms() + 5000, &report);
    redis_child_close(b.redis);
    free(b.body);
    printf("out of memory: %u rounds, %u answered 503, %u without an answer, %u faults\n", b.rounds,
        b.refused, b.silent, b.faults);
    return b.faults == 0 ? 0 : 1;
}

#include "tests/oom/service.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "handlers/reply/json_memory.h"
#include "handlers/routes.h"
#include "storage/base/clock.h"
#include "storage/job/dimension.h"
#include "tests/oom/failing_alloc.h"

/* The body of an answer becomes the HTTP library's. */
struct MHD_Response *__real_MHD_create_response_from_buffer(size_t n, void *buffer, int mode);
struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t n, void *buffer, int mode);
struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t n, void *buffer, int mode)
{
    alloc_handed_over(buffer);
    return __real_MHD_create_response_from_buffer(n, buffer, mode);
}

void service_wait_ms(int64_t ms)
{
    (void)nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static const struct slice no_policy = {"", 0};

const char *service_redis_url(const struct service *s)
{
    return s->redis == NULL ? getenv("OOM_REDIS") : redis_child_url(s->redis);
}

static bool open_all(struct service *s)
{
    const char *error = NULL;
    struct storage_config config = {
        .redis_url = service_redis_url(s),
        .partitions = 16,
        .retention = {.keep_s = {172800, 5356800, 95040000, KEEP_FOREVER}},
        .visit_timeout_s = 1800,
        .rotation = ROTATE_NEVER,
        .addresses = true,
        .max_values = s->max_names,
        .max_events = s->max_names,
        .queue_events = 100000,
        .readers = 1,
        .seen = {.on = true, .capacity = 1000, .error = 0.01, .keep_s = 7948800},
        .lead = false,
    };
    s->app = (struct app){.storage = storage_open(&config, &error),
        .max_events = REQUEST_EVENTS_MAX,
        .max_future_s = 300,
        .policy_names = &no_policy,
        .seen = true,
        .stats = &s->stats,
        .site_stats = &s->site_stats,
        .addresses = true,
        .plan = {.counted = 1U << DIMENSION_SOURCE | 1U << DIMENSION_BROWSER,
            .with_visitors = 1U << DIMENSION_SOURCE},
        .robots = &s->robots};
    static const unsigned char key[ROBOTS_CACHE_KEY_BYTES] = {1};
    robots_cache_init(&s->robots, key);
    if (s->app.storage == NULL) {
        return false;
    }
    for (int i = 0; i < 2000 && atomic_load(&storage_stats(s->app.storage)->redis_connected) == 0;
         i++) {
        service_wait_ms(1);
    }
    struct http_server_config http = {
        .host = "127.0.0.1",
        .threads = 1,
        .max_connections = 16,
        .max_body = SERVICE_BODY_MAX,
        .max_body_memory = 4 * SERVICE_BODY_MAX,
        .request_timeout_ms = 5000,
        .idle_timeout_ms = 5000,
        .app = &s->app,
        .routes = api_routes,
        .n_routes = n_api_routes,
        .submit = storage_submit,
        .now_ms = storage_now_ms,
        .storage = s->app.storage,
    };
    s->server = http_server_start(&http, &error);
    return s->server != NULL && storage_now_ms(s->app.storage) > 0;
}

void service_open(struct service *s)
{
    if (!open_all(s)) {
        fprintf(stderr, "the service does not start\n");
        exit(2);
    }
}

void service_close(struct service *s)
{
    if (s->server != NULL) {
        http_server_quiesce(s->server);
    }
    if (s->app.storage != NULL) {
        storage_drain(s->app.storage, monotonic_ms() + 5000);
    }
    http_server_stop(s->server, 1000);
    storage_close(s->app.storage);
    site_stats_release(&s->site_stats);
    s->site_stats = (struct site_stats){0};
    s->server = NULL;
    s->app.storage = NULL;
}

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

int service_ask_port(
    uint16_t port, const char *head, const char *body, size_t body_n, char *answer, size_t answer_n)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 10};
    size_t n = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        perror("connect");
        exit(2);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    send_all(fd, head, strlen(head));
    send_all(fd, body, body_n);
    for (ssize_t more = 1; more > 0 && n < answer_n - 1;) {
        more = recv(fd, answer + n, answer_n - 1 - n, 0);
        n += more > 0 ? (size_t)more : 0;
    }
    answer[n] = '\0';
    (void)close(fd);
    return n > 12 && strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

int service_ask(struct service *s, const char *head, const char *body, size_t body_n, char *answer,
    size_t answer_n)
{
    return service_ask_port(http_server_port(s->server), head, body, body_n, answer, answer_n);
}

void service_start_redis(struct service *s, enum redis_fsync fsync)
{
    char directory[] = "/tmp/tallyd-oom-XXXXXX";
    char error[REDIS_CHILD_TEXT] = "no directory";
    struct redis_child_report report = {0};
    json_memory_watch();
    if (getenv("OOM_REDIS") != NULL) {
        return;
    }
    struct redis_child_config config = {.data_dir = directory,
        .server = "redis-server",
        .maxmemory = INT64_C(1) << 30,
        .fsync = fsync};
    s->redis = mkdtemp(directory) == NULL ? NULL : redis_child_open(&config, error);
    if (s->redis == NULL || !redis_child_start(s->redis, monotonic_ms(), &report)) {
        fprintf(stderr, "Redis does not start: %s\n", s->redis == NULL ? error : report.text);
        exit(2);
    }
}

void service_stop_redis(struct service *s)
{
    struct redis_child_report report;
    if (s->redis == NULL) {
        return;
    }
    redis_child_stop(s->redis, monotonic_ms() + 5000, &report);
    redis_child_close(s->redis);
}

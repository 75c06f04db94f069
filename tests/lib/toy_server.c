#include "tests/lib/toy_server.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "handlers/reply/problem.h"

#define PATIENCE_MS 5000

struct toy {
    struct http_server *server;
    uint16_t port;
    enum toy_mode mode;
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t wake;

    /* Guarded by mu. */
    struct storage_job *jobs;
    bool let_go, quit;
    unsigned observed;
    size_t last_route;
    unsigned last_status;
};

int64_t toy_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- routes ---- */

static enum handler_result say(struct http_exchange *exchange, const char *p, size_t n)
{
    struct http_response *response = &exchange->response;
    response->status = 200;
    response->content_type = "text/plain";
    response->body = malloc(n + 1);
    response->body_n = n;
    memcpy(response->body, p, n);
    return HANDLER_REPLY;
}

static enum handler_result now_start(struct http_exchange *exchange)
{
    (void)problem_add_header(&exchange->response, "X-Toy", "yes");
    return say(exchange, "now", 3);
}

static enum handler_result thread_start(struct http_exchange *exchange)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%ld", (long)gettid());
    return say(exchange, text, (size_t)n);
}

static void release_state(struct http_exchange *exchange)
{
    free(exchange->state); /* a sanitizer tells if this is forgotten or done twice */
    exchange->state = NULL;
}

static enum handler_result wait_start(struct http_exchange *exchange)
{
    exchange->state = malloc(1);
    exchange->release = release_state;
    if (exchange->request.query.n > 0) { /* a job that may take less time than its request */
        exchange->job.deadline_ms = toy_now_ms() + 50;
    }
    return HANDLER_WAIT;
}

static void wait_finish(struct http_exchange *exchange)
{
    const struct http_request *request = &exchange->request;
    if (exchange->job.err != STORAGE_OK) {
        problem_from_storage(&exchange->response, exchange->job.err, NULL);
    } else if (request->method == HTTP_POST) {
        (void)say(exchange, request->body.p, request->body.n);
    } else {
        (void)say(exchange, "waited", 6);
    }
}

/* As many jobs, one after the other, as the query is long. */
static void again_finish(struct http_exchange *exchange)
{
    struct http_request *request = &exchange->request;
    if (exchange->job.err != STORAGE_OK) {
        problem_from_storage(&exchange->response, exchange->job.err, NULL);
        return;
    }
    exchange->again = request->query.n > 1;
    exchange->job = (struct storage_job){0};
    if (exchange->again) {
        request->query.n--;
    } else {
        (void)say(exchange, request->query.p, request->query.n);
    }
}

static enum handler_result echo_start(struct http_exchange *exchange)
{
    cr_assert_eq(exchange->request.body_bytes, exchange->request.body.p);
    return say(exchange, exchange->request.body.p, exchange->request.body.n);
}

static enum handler_result query_start(struct http_exchange *exchange)
{
    const struct http_request *request = &exchange->request;
    size_t n = request->path.n + 1 + request->query.n;
    char *text = malloc(n + 1);
    (void)snprintf(text, n + 1, "%.*s %.*s", (int)request->path.n, request->path.p,
        (int)request->query.n, request->query.n > 0 ? request->query.p : "");
    (void)say(exchange, text, n);
    free(text);
    return HANDLER_REPLY;
}

static enum handler_result big_start(struct http_exchange *exchange)
{
    exchange->response.status = 200;
    exchange->response.body_n = 4u << 20;
    exchange->response.body = calloc(1, exchange->response.body_n);
    return HANDLER_REPLY;
}

static enum handler_result empty_start(struct http_exchange *exchange)
{
    exchange->response.status = 204;
    return HANDLER_REPLY;
}

static const struct route routes[] = {
    {HTTP_GET, "/now", "getNow", now_start, NULL, 0},
    {HTTP_GET, "/wait", "getWait", wait_start, wait_finish, 0},
    {HTTP_POST, "/echo", "postEcho", echo_start, NULL, ROUTE_BODY},
    {HTTP_POST, "/wait", "postWait", wait_start, wait_finish, ROUTE_BODY},
    {HTTP_GET, "/query", "getQuery", query_start, NULL, 0},
    {HTTP_GET, "/big", "getBig", big_start, NULL, 0},
    {HTTP_GET, "/empty", "getEmpty", empty_start, NULL, 0},
    {HTTP_DELETE, "/now", "deleteNow", now_start, NULL, 0},
    {HTTP_GET, "/thread", "getThread", thread_start, NULL, 0},
    {HTTP_GET, "/again", "getAgain", wait_start, again_finish, ROUTE_SLASH},
};

size_t toy_n_routes(void)
{
    return sizeof(routes) / sizeof(routes[0]);
}

/* ---- storage ---- */

static void submit(struct storage *storage, struct storage_job *job)
{
    struct toy *toy = (struct toy *)storage;
    if (toy->mode == TOY_INLINE) {
        job->err = STORAGE_OK;
        job->done(job);
        return;
    }
    (void)pthread_mutex_lock(&toy->mu);
    job->next = toy->jobs;
    toy->jobs = job;
    if (!job->more_follow) {
        (void)pthread_cond_broadcast(&toy->wake);
    }
    (void)pthread_mutex_unlock(&toy->mu);
}

static void flush(struct storage *storage)
{
    struct toy *toy = (struct toy *)storage;
    (void)pthread_mutex_lock(&toy->mu);
    for (struct storage_job *job = toy->jobs; job != NULL; job = job->next) {
        job->more_follow = false;
    }
    (void)pthread_cond_broadcast(&toy->wake);
    (void)pthread_mutex_unlock(&toy->mu);
}

/* Take what may be answered now off the list.  Called with the lock held. */
static struct storage_job *take_jobs(struct toy *toy)
{
    struct storage_job *taken = NULL;
    struct storage_job **at = &toy->jobs;
    while (*at != NULL) {
        struct storage_job *job = *at;
        bool late = toy_now_ms() >= job->deadline_ms;
        bool held = job->more_follow || (toy->mode == TOY_HOLD && !toy->let_go && !toy->quit);
        if (held && !late) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        job->err = late ? STORAGE_LATE : STORAGE_OK;
        job->next = taken;
        taken = job;
    }
    return taken;
}

static void *serve(void *data)
{
    struct toy *toy = data;
    (void)pthread_mutex_lock(&toy->mu);
    while (!toy->quit || toy->jobs != NULL) {
        struct storage_job *jobs = take_jobs(toy);
        if (jobs == NULL) { /* look again soon: a job may be late */
            struct timespec until;
            (void)clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_nsec += 5000000;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            (void)pthread_cond_timedwait(&toy->wake, &toy->mu, &until);
            continue;
        }
        (void)pthread_mutex_unlock(&toy->mu);
        while (jobs != NULL) {
            struct storage_job *job = jobs;
            jobs = job->next; /* done() gives the job away */
            job->done(job);
        }
        (void)pthread_mutex_lock(&toy->mu);
    }
    (void)pthread_mutex_unlock(&toy->mu);
    return NULL;
}

static int64_t now_ms(struct storage *storage)
{
    (void)storage;
    return 1700000000000;
}

static void observe(struct http_metrics *metrics, size_t route, unsigned status, int64_t latency_us)
{
    struct toy *toy = (struct toy *)metrics;
    cr_assert(latency_us >= 0);
    (void)pthread_mutex_lock(&toy->mu);
    toy->observed++;
    toy->last_route = route;
    toy->last_status = status;
    (void)pthread_mutex_unlock(&toy->mu);
}

void toy_let_go(struct toy *toy)
{
    (void)pthread_mutex_lock(&toy->mu);
    toy->let_go = true;
    (void)pthread_cond_broadcast(&toy->wake);
    (void)pthread_mutex_unlock(&toy->mu);
}

/* ---- life ---- */

static struct http_server_config with_defaults(struct http_server_config config, struct toy *toy)
{
    config.host = config.host != NULL ? config.host : "127.0.0.1";
    config.threads = config.threads != 0 ? config.threads : 1;
    config.max_connections = config.max_connections != 0 ? config.max_connections : 64;
    config.max_body = config.max_body != 0 ? config.max_body : 100000;
    config.max_body_memory = config.max_body_memory != 0 ? config.max_body_memory : 100000;
    config.request_timeout_ms = config.request_timeout_ms != 0 ? config.request_timeout_ms : 5000;
    config.idle_timeout_ms = config.idle_timeout_ms != 0 ? config.idle_timeout_ms : 5000;
    config.routes = routes;
    config.n_routes = toy_n_routes();
    config.submit = submit;
    config.flush = flush;
    config.now_ms = now_ms;
    config.storage = (struct storage *)toy;
    config.metrics = (struct http_metrics *)toy;
    config.observe = observe;
    return config;
}

struct toy *toy_start(struct http_server_config config, enum toy_mode mode)
{
    const char *error;
    struct toy *toy = calloc(1, sizeof(*toy));
    pthread_condattr_t attr;
    toy->mode = mode;
    (void)pthread_mutex_init(&toy->mu, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&toy->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    cr_assert_eq(pthread_create(&toy->thread, NULL, serve, toy), 0);
    config = with_defaults(config, toy);
    toy->server = http_server_start(&config, &error);
    cr_assert_not_null(toy->server, "%s", error);
    toy->port = http_server_port(toy->server);
    return toy;
}

struct http_server *toy_server(struct toy *toy)
{
    return toy->server;
}

struct http_server_stats toy_stats(struct toy *toy)
{
    struct http_server_stats stats;
    http_server_stats(toy->server, &stats);
    return stats;
}

void toy_observed(struct toy *toy, unsigned *ret_n, size_t *ret_route, unsigned *ret_status)
{
    (void)pthread_mutex_lock(&toy->mu);
    *ret_n = toy->observed;
    *ret_route = toy->last_route;
    *ret_status = toy->last_status;
    (void)pthread_mutex_unlock(&toy->mu);
}

static void nap(int64_t since_ms, int64_t n, const char *what)
{
    cr_assert(
        toy_now_ms() - since_ms < PATIENCE_MS, "waited in vain, there are %d %s", (int)n, what);
    (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
}

void toy_await_lent(struct toy *toy, int64_t n)
{
    for (int64_t since = toy_now_ms(); toy_stats(toy).suspended != n;) {
        nap(since, toy_stats(toy).suspended, "suspended requests");
    }
}

void toy_await_connections(struct toy *toy, int64_t n)
{
    for (int64_t since = toy_now_ms(); toy_stats(toy).connections != n;) {
        nap(since, toy_stats(toy).connections, "connections");
    }
}

void toy_await_observed(struct toy *toy, unsigned n)
{
    unsigned seen, status;
    size_t route;
    int64_t since = toy_now_ms();
    for (toy_observed(toy, &seen, &route, &status); seen < n;
         toy_observed(toy, &seen, &route, &status)) {
        nap(since, (int64_t)seen, "answers observed");
    }
}

void toy_stop(struct toy *toy)
{
    toy_stop_within(toy, 0);
}

void toy_stop_within(struct toy *toy, int64_t grace_ms)
{
    http_server_stop(toy->server, grace_ms);
    (void)pthread_mutex_lock(&toy->mu);
    toy->quit = true;
    cr_expect_null(toy->jobs, "jobs are left");
    (void)pthread_cond_broadcast(&toy->wake);
    (void)pthread_mutex_unlock(&toy->mu);
    (void)pthread_join(toy->thread, NULL);
    (void)pthread_cond_destroy(&toy->wake);
    (void)pthread_mutex_destroy(&toy->mu);
    free(toy);
}

/* ---- the client ---- */

static int try_connect(const struct toy *toy)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons(toy->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0) {
        return fd;
    }
    (void)close(fd);
    return -1;
}

int toy_connect(const struct toy *toy)
{
    int fd = try_connect(toy);
    cr_assert(fd >= 0, "%s", strerror(errno));
    return fd;
}

bool toy_can_connect(const struct toy *toy)
{
    int fd = try_connect(toy);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

void toy_send_n(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        cr_assert(sent > 0, "%s", strerror(errno));
        p += sent;
        n -= (size_t)sent;
    }
}

void toy_send(int fd, const char *text)
{
    toy_send_n(fd, text, strlen(text));
}

/* Byte by byte, for what follows the head may be the next answer's. */
static bool read_head(int fd, struct answer *ret)
{
    size_t n = 0;
    while (n < 4 || memcmp(ret->head + n - 4, "\r\n\r\n", 4) != 0) {
        cr_assert(n + 1 < sizeof(ret->head), "the head is too long");
        ssize_t got = recv(fd, ret->head + n, 1, 0);
        if (got <= 0 && n == 0 && (got == 0 || errno == ECONNRESET)) {
            return false;
        }
        cr_assert_eq(got, 1, "half an answer: %.*s", (int)n, ret->head);
        n++;
    }
    ret->head[n] = '\0';
    return true;
}

bool answer_header(const struct answer *answer, const char *name, char *ret, size_t ret_n)
{
    size_t name_n = strlen(name);
    ret[0] = '\0';
    for (const char *line = strstr(answer->head, "\r\n"); line != NULL && line[2] != '\r';
         line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, name_n) != 0 || line[2 + name_n] != ':') {
            continue;
        }
        const char *value = line + 2 + name_n + 1;
        value += strspn(value, " ");
        (void)snprintf(ret, ret_n, "%.*s", (int)strcspn(value, "\r"), value);
        return true;
    }
    return false;
}

static bool read_answer(int fd, struct answer *ret, bool with_body)
{
    char length[32];
    ret->n = 0;
    ret->body[0] = '\0';
    if (!read_head(fd, ret)) {
        return false;
    }
    cr_assert_eq(strncmp(ret->head, "HTTP/1.1 ", 9), 0, "%s", ret->head);
    ret->status = (int)strtol(ret->head + 9, NULL, 10);
    if (!answer_header(ret, "Content-Length", length, sizeof(length))) {
        return true;
    }
    ret->n = (size_t)strtoull(length, NULL, 10);
    for (size_t at = 0; with_body && at < ret->n;) {
        char sink[8192];
        bool keep = at + 1 < sizeof(ret->body);
        size_t room = keep ? sizeof(ret->body) - 1 - at : sizeof(sink);
        size_t left = ret->n - at;
        ssize_t got = recv(fd, keep ? ret->body + at : sink, left < room ? left : room, 0);
        cr_assert(got > 0, "half a body: %zu of %zu", at, ret->n);
        at += (size_t)got;
        if (keep) {
            ret->body[at] = '\0';
        }
    }
    return true;
}

bool toy_answer(int fd, struct answer *ret)
{
    return read_answer(fd, ret, true);
}

bool toy_answer_to_head(int fd, struct answer *ret)
{
    return read_answer(fd, ret, false);
}

bool toy_readable(int fd, int ms)
{
    struct pollfd poll_in = {.fd = fd, .events = POLLIN};
    return poll(&poll_in, 1, ms) != 0;
}

bool toy_ended(int fd, int ms)
{
    char byte;
    return toy_readable(fd, ms) && recv(fd, &byte, 1, 0) <= 0;
}

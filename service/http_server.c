#include "service/http_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "handlers/problem.h"
#include "service/http_strict.h"
#include "service/listen_socket.h"
#include "service/reaper.h"
#include "service/request.h"
#include "service/request_id.h"

/* Takes a head of 12 KiB that has HTTP_FIELDS_MAX fields, a record of 64 bytes for each and the
 * answer's own head included.  It is cleared after every request, so each KiB costs. */
#define CONNECTION_MEMORY ((size_t)32 * 1024)
#define ID_MAX            128

enum request_state {
    REQUEST_DONE,  /* none in progress */
    REQUEST_HEAD,  /* the target is known, fields are coming */
    REQUEST_BODY,  /* the head was judged, the rest is coming */
    REQUEST_WAIT,  /* suspended: the job is lent to storage, or resumed and about to be called */
    REQUEST_REPLY, /* the answer is queued */
};

struct connection;

/* One thread of the library's. */
struct worker {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    _Atomic(struct connection *) ready; /* jobs done, to be resumed by this thread itself */
};

/* One connection and the request in progress on it: there is at most one, so its memory is reused.
 */
struct connection {
    struct http_server *server;
    struct worker *worker;
    struct MHD_Connection *mhd;
    struct reaper_entry watch;
    uint64_t consumed; /* bytes of the requests so far, or REAPER_UNKNOWN */
    bool linger;       /* closed with input still coming */
    char peer[INET6_ADDRSTRLEN];

    /* Valid from on_target() to on_completed(). */
    enum request_state state;
    int64_t began_us, due_ms;
    struct connection *next_ready; /* on worker->ready */
    bool wakes;                    /* was resumed for all that are on worker->ready */
    const char *target_in_head;    /* where the library keeps what request.target is a copy of */
    char id[ID_MAX + 1];
    struct request request;
};

struct http_server {
    struct http_server_config config;
    struct request_context context;
    struct request_ids ids;
    struct reaper *reaper;
    int listen_fd;
    uint16_t port;
    /* A daemon a thread on one socket, not MHD's own pool: MHD_quiesce_daemon() on a pool aborts if
     * a worker takes the socket out of its epoll set at the same moment (0.9.75, no ENOENT check).
     */
    struct worker workers[HTTP_THREADS_MAX];
    unsigned n_workers;

    atomic_bool quiesced, stopping;
    _Atomic int64_t lent; /* connections suspended, or being resumed */
};

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void enter(struct connection *connection, enum request_state state)
{
    static const unsigned from[] = {
        [REQUEST_HEAD] = 1u << REQUEST_DONE,
        [REQUEST_BODY] = 1u << REQUEST_HEAD,
        [REQUEST_WAIT] = 1u << REQUEST_BODY | 1u << REQUEST_WAIT,
        [REQUEST_REPLY] = 1u << REQUEST_HEAD | 1u << REQUEST_BODY | 1u << REQUEST_WAIT,
        /* From anywhere: the client may be gone, or the library refuses what follows. */
        [REQUEST_DONE] =
            1u << REQUEST_HEAD | 1u << REQUEST_BODY | 1u << REQUEST_WAIT | 1u << REQUEST_REPLY,
    };
    assert((from[state] >> connection->state & 1) != 0);
    (void)from;
    connection->state = state;
}

/* ---- the answer ---- */

static bool add_headers(struct connection *connection, struct MHD_Response *response)
{
    const struct http_response *from = &connection->request.exchange.response;
    bool ok = from->content_type == NULL ||
              MHD_add_response_header(response, "Content-Type", from->content_type) == MHD_YES;
    ok = ok && MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
         MHD_add_response_header(response, "X-Request-Id", connection->id) == MHD_YES;
    for (unsigned i = 0; ok && i < from->n_headers; i++) {
        const struct http_header *header = &from->headers[i];
        ok = MHD_add_response_header(response, header->name,
                 header->text != NULL ? header->text : header->value) == MHD_YES;
    }
    if (ok && atomic_load_explicit(&connection->server->quiesced, memory_order_relaxed)) {
        ok = MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    }
    return ok;
}

/* Queue the exchange's response.  If that fails, for want of memory or because a handler made a
 * header that is none, the connection is closed without an answer. */
static enum MHD_Result reply(struct connection *connection)
{
    struct http_response *from = &connection->request.exchange.response;
    request_dress(&connection->request);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(from->body_n, from->body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        return MHD_NO;
    }
    from->body = NULL; /* the library's now */
    enum MHD_Result result = MHD_NO;
    if (add_headers(connection, response)) {
        result = MHD_queue_response(connection->mhd, from->status, response);
    }
    MHD_destroy_response(response); /* what is queued holds its own reference */
    if (result == MHD_YES) {
        enter(connection, REQUEST_REPLY);
        reaper_busy(
            &connection->watch, connection->due_ms + connection->server->config.idle_timeout_ms);
    }
    return result;
}

/* ---- the head ---- */

struct fields {
    struct http_field at[HTTP_FIELDS_MAX];
    size_t n;
    bool overflow;
};

static enum MHD_Result gather_field(void *cls, enum MHD_ValueKind kind, const char *name,
    size_t name_n, const char *value, size_t value_n)
{
    struct fields *fields = cls;
    (void)kind;
    fields->overflow = fields->n == HTTP_FIELDS_MAX;
    if (fields->overflow) {
        return MHD_NO;
    }
    fields->at[fields->n++] = (struct http_field){{name, name_n}, {value, value_n}};
    return MHD_YES;
}

/* Where the next request begins in the stream of bytes, for the reaper. */
static void account(struct connection *connection, size_t head_n)
{
    const struct http_message *message = &connection->request.message;
    if (message->chunked) { /* how much framing a body has is not told */
        connection->consumed = REAPER_UNKNOWN;
    } else if (connection->consumed != REAPER_UNKNOWN) {
        connection->consumed += head_n + message->content_length;
    }
}

static enum request_verdict judge_head(
    struct connection *connection, const char *method, const char *version)
{
    struct request *request = &connection->request;
    struct fields fields;
    fields.n = 0; /* the rest is 8 KiB that need no clearing */
    fields.overflow = false;
    (void)MHD_get_connection_values_n(connection->mhd, MHD_HEADER_KIND, gather_field, &fields);
    if (fields.overflow) {
        request_refuse_fields(request);
        return REQUEST_ANSWER_NOW;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct http_head head = {
        .method = slice_of(method),
        .target = {connection->target_in_head, request->target.n},
        .version = slice_of(version),
        .fields = fields.at,
        .n_fields = fields.n,
        .size = info != NULL ? info->header_size : 0,
    };
    request->exchange.request.peer = slice_of(connection->peer);
    enum request_verdict verdict = request_head(request, &head);
    account(connection, head.size);
    return verdict;
}

static void name_request(struct connection *connection)
{
    struct slice given = connection->request.message.request_id;
    if (http_request_id_valid(given)) {
        memcpy(connection->id, given.p, given.n);
        connection->id[given.n] = '\0';
    } else {
        request_ids_next(&connection->server->ids, connection->id);
    }
}

/* The first call: the head is complete, the library has not asked for the body yet.  Without one it
 * calls again at once; an answer now makes it close the connection. */
static enum MHD_Result on_head(
    struct connection *connection, const char *method, const char *version)
{
    enum request_verdict verdict = judge_head(connection, method, version);
    name_request(connection);
    if (verdict == REQUEST_ANSWER_NOW) {
        connection->linger = true;
        return reply(connection);
    }
    enter(connection, REQUEST_BODY);
    return MHD_YES;
}

/* ---- the body, and the handler ---- */

/* Jobs come back in bursts: one flush of storage acknowledges many.  To resume a connection takes a
 * contended lock and a system call, so storage's thread, which has the next flush to do, resumes
 * the first of a burst only.  The others go on a list that the first one's HTTP thread empties when
 * it wakes up (measured with 64 connections: 0.9 instead of 1.6 us a request on storage's thread).
 *
 * Runs on a thread of storage, or within submit.  A connection that was put on a list that was not
 * empty belongs to its HTTP thread at once; lent is the last thing touched, for a server that stops
 * frees itself when it is 0. */
static void on_job_done(struct storage_job *job)
{
    struct connection *connection = job->data;
    struct http_server *server = connection->server;
    struct worker *worker = connection->worker;
    struct connection *head = atomic_load(&worker->ready);
    do {
        connection->next_ready = head;
        connection->wakes = head == NULL;
    } while (!atomic_compare_exchange_weak(&worker->ready, &head, connection));
    if (head != NULL) {
        return;
    }
    MHD_resume_connection(connection->mhd);
    (void)atomic_fetch_sub(&server->lent, 1);
}

/* On the HTTP thread, when the connection that wakes is called, or closed because its client left.
 */
static void resume_ready(struct connection *waker)
{
    struct http_server *server = waker->server;
    struct connection *next = atomic_exchange(&waker->worker->ready, NULL);
    waker->wakes = false;
    while (next != NULL) {
        struct connection *connection = next;
        next = connection->next_ready;
        if (connection == waker) {
            continue;
        }
        MHD_resume_connection(connection->mhd);
        (void)atomic_fetch_sub(&server->lent, 1);
    }
}

/* Lend the job.  The order of the two atomics makes sure that http_server_stop() either sees this
 * job or is seen here: a connection suspended under MHD_stop_daemon() would abort the process. */
static enum MHD_Result lend(struct connection *connection)
{
    struct http_server *server = connection->server;
    struct http_exchange *exchange = &connection->request.exchange;
    struct storage_job *job = &exchange->job;
    (void)atomic_fetch_add(&server->lent, 1);
    if (atomic_load(&server->stopping)) {
        (void)atomic_fetch_sub(&server->lent, 1);
        problem_from_storage(&exchange->response, STORAGE_SHUTDOWN, NULL);
        return reply(connection);
    }
    job->done = on_job_done;
    job->data = connection;
    job->deadline_ms = exchange->request.deadline_ms;
    enter(connection, REQUEST_WAIT);
    reaper_busy(&connection->watch, REAPER_NEVER);
    MHD_suspend_connection(connection->mhd); /* first: done() may come before submit returns */
    server->config.submit(server->config.storage, job);
    return MHD_YES;
}

/* Storage must answer this long before the request is due, so that the answer is still in time. */
static int64_t slack_ms(int64_t timeout_ms)
{
    return timeout_ms < 5000 ? timeout_ms / 20 : 250;
}

static enum MHD_Result on_complete(struct connection *connection)
{
    const struct http_server_config *config = &connection->server->config;
    int64_t deadline_ms = connection->due_ms - slack_ms(config->request_timeout_ms);
    int64_t now_ms = config->now_ms(config->storage);
    if (request_run(&connection->request, now_ms, deadline_ms) == HANDLER_WAIT) {
        return lend(connection);
    }
    return reply(connection);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_n, void **state)
{
    struct connection *connection = *state;
    (void)cls;
    (void)mhd;
    (void)url;                /* decoded and cut: on_target() has the real one */
    if (connection == NULL) { /* no memory at on_target() */
        return MHD_NO;
    }
    switch (connection->state) {
    case REQUEST_HEAD:
        return on_head(connection, method, version);
    case REQUEST_BODY:
        if (*upload_n == 0) {
            return on_complete(connection);
        }
        request_upload(&connection->request, upload, *upload_n);
        *upload_n = 0;
        return MHD_YES;
    case REQUEST_WAIT:
        if (connection->wakes) {
            resume_ready(connection);
        }
        request_finish(&connection->request);
        if (connection->request.exchange.again) {
            connection->request.exchange.again = false;
            return lend(connection);
        }
        return reply(connection);
    case REQUEST_REPLY:
    case REQUEST_DONE:
        break;
    }
    return MHD_NO; /* not reached: the library calls for a request that has no answer yet */
}

/* ---- the life of a request, and of a connection ---- */

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* Keep the library from parsing the query: each argument takes 56 bytes of connection memory, and a
 * request with more than fit is never answered at all (0.9.75).  It looks for NUL behind the '?'
 * that it found before the call of on_target(); the bytes are its own and about to be cut anyway.
 */
static void hide_query(const char *target, size_t n)
{
    char *mark = memchr((char *)(uintptr_t)target, '?', n);
    if (mark != NULL) {
        mark[1] = '\0';
    }
}

/* The request line is there: a request begins.  What this returns becomes *state of on_request().
 */
static void *on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct http_server *server = cls;
    struct connection *connection = connection_of(mhd);
    size_t n = strlen(target);
    if (connection == NULL ||
        !request_begin(&connection->request, &server->context, (struct slice){target, n})) {
        return NULL;
    }
    hide_query(target, n);
    connection->target_in_head = target;
    connection->began_us = now_us();
    connection->due_ms = reaper_began_ms(&connection->watch, connection->began_us / 1000) +
                         server->config.request_timeout_ms;
    enter(connection, REQUEST_HEAD);
    reaper_busy(&connection->watch, connection->due_ms);
    return connection;
}

static void observe(const struct connection *connection, int64_t ended_us)
{
    const struct http_server_config *config = &connection->server->config;
    const struct route *route = connection->request.route;
    if (config->observe != NULL) {
        config->observe(config->observe_data,
            route != NULL ? (size_t)(route - config->routes) : config->n_routes,
            connection->request.exchange.response.status, ended_us - connection->began_us);
    }
}

/* The request is over: answered, refused by the library, or its connection is lost. */
static void on_completed(
    void *cls, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why)
{
    struct connection *connection = *state;
    (void)cls;
    (void)mhd;
    (void)why;
    if (connection == NULL) {
        return;
    }
    if (connection->wakes) {
        resume_ready(connection);
    }
    int64_t now = now_us();
    if (connection->state == REQUEST_REPLY) {
        observe(connection, now);
    }
    enter(connection, REQUEST_DONE);
    request_end(&connection->request);
    reaper_idle(&connection->watch, now / 1000, connection->consumed);
    *state = NULL;
}

/* The peer's address as text; "" if it has none (a unix socket handed in). */
static void name_peer(const struct sockaddr *address, char *ret, socklen_t room)
{
    ret[0] = '\0';
    if (address == NULL) {
        return;
    }
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof(v4));
        (void)inet_ntop(AF_INET, &v4.sin_addr, ret, room);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof(v6));
        (void)inet_ntop(AF_INET6, &v6.sin6_addr, ret, room);
    }
}

static void open_connection(struct worker *worker, struct MHD_Connection *mhd, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection = info != NULL ? malloc(sizeof(*connection)) : NULL;
    *context = connection;
    if (connection == NULL) {
        return; /* on_target() gives up */
    }
    connection->server = worker->server;
    connection->worker = worker;
    connection->wakes = false;
    connection->mhd = mhd;
    connection->consumed = 0;
    connection->linger = false;
    connection->state = REQUEST_DONE;
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    name_peer(from != NULL ? from->client_addr : NULL, connection->peer, sizeof(connection->peer));
    reaper_watch(worker->server->reaper, &connection->watch, info->connect_fd, reaper_now_ms());
}

static void close_connection(void **context)
{
    struct connection *connection = *context;
    if (connection == NULL) {
        return;
    }
    struct reaper *reaper = connection->server->reaper;
    int fd = connection->watch.fd;
    reaper_forget(reaper, &connection->watch); /* the library closes fd after this */
    int copy = connection->linger ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy >= 0) {
        reaper_linger(reaper, copy);
    }
    free(connection);
    *context = NULL;
}

static void on_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        open_connection(cls, mhd, context);
    } else {
        close_connection(context);
    }
}

/* ---- start and stop ---- */

static bool start_daemons(struct http_server *server)
{
    const struct http_server_config *config = &server->config;
    unsigned limit = config->max_connections / config->threads;
    while (server->n_workers < config->threads) {
        struct worker *worker = &server->workers[server->n_workers];
        worker->server = server;
        worker->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME,
            0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, server->listen_fd,
            MHD_OPTION_CONNECTION_LIMIT, limit > 0 ? limit : 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, on_connection, worker,
            MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_URI_LOG_CALLBACK,
            on_target, server, MHD_OPTION_END);
        if (worker->daemon == NULL) {
            return false;
        }
        server->n_workers++;
    }
    return true;
}

static const char *start(struct http_server *server)
{
    const struct http_server_config *config = &server->config;
    const char *error;
    if (!router_init(&server->context.router, config->routes, config->n_routes)) {
        return "out of memory";
    }
    if (!request_ids_init(&server->ids)) {
        return "the system gives no random bytes";
    }
    server->reaper = reaper_start(config->request_timeout_ms, config->idle_timeout_ms);
    if (server->reaper == NULL) {
        return "a thread cannot be started";
    }
    server->listen_fd = listen_socket_open(config->host, config->port, &server->port, &error);
    if (server->listen_fd < 0) {
        return error;
    }
    return start_daemons(server) ? NULL : "the HTTP library cannot be started";
}

struct http_server *http_server_start(
    const struct http_server_config *config, const char **ret_error)
{
    assert(config->threads >= 1 && config->threads <= HTTP_THREADS_MAX);
    struct http_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        *ret_error = "out of memory";
        return NULL;
    }
    server->config = *config;
    atomic_init(&server->context.app, config->app);
    server->context.tokens = config->tokens;
    server->context.max_body = config->max_body;
    server->context.budget.max = config->max_body_memory;
    server->listen_fd = -1;
    const char *error = start(server);
    if (error == NULL) {
        return server;
    }
    http_server_stop(server, 0);
    *ret_error = error;
    return NULL;
}

void http_server_set_app(struct http_server *server, const struct app *app)
{
    atomic_store_explicit(&server->context.app, app, memory_order_release);
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_stats(struct http_server *server, struct http_server_stats *ret)
{
    uint64_t connections, late;
    reaper_count(server->reaper, &connections, &late);
    *ret = (struct http_server_stats){
        .connections = (int64_t)connections,
        .suspended = atomic_load(&server->lent),
        .body_bytes = (int64_t)atomic_load(&server->context.budget.used),
        .late = (int64_t)late,
        .refused_head = atomic_load(&server->context.refused_head),
        .refused_large = atomic_load(&server->context.refused_large),
        .refused_memory = atomic_load(&server->context.refused_memory),
    };
}

void http_server_quiesce(struct http_server *server)
{
    if (atomic_exchange(&server->quiesced, true)) {
        return;
    }
    for (unsigned i = 0; i < server->n_workers; i++) {
        (void)MHD_quiesce_daemon(server->workers[i].daemon); /* the socket stays ours */
    }
    /* Not close(): a daemon's thread may be about to accept, and the number could be another's by
     * then. */
    if (server->listen_fd >= 0) {
        (void)shutdown(server->listen_fd, SHUT_RDWR);
    }
}

void http_server_wait_idle(struct http_server *server, int64_t grace_ms)
{
    (void)reaper_wait_idle(server->reaper, reaper_now_ms() + grace_ms);
}

void http_server_stop(struct http_server *server, int64_t grace_ms)
{
    if (server == NULL) {
        return;
    }
    if (grace_ms <= 0) {
        atomic_store(
            &server->stopping, true); /* from the moment on that nobody can connect any more */
    }
    http_server_quiesce(server);
    if (server->reaper != NULL) {
        (void)reaper_wait_idle(server->reaper, reaper_now_ms() + grace_ms);
    }
    atomic_store(&server->stopping, true);
    while (atomic_load(&server->lent) > 0) { /* storage is at its last jobs; each has a deadline */
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    for (unsigned i = 0; i < server->n_workers; i++) {
        MHD_stop_daemon(server->workers[i].daemon);
    }
    reaper_stop(server->reaper);
    if (server->listen_fd >= 0) {
        (void)close(server->listen_fd);
    }
    router_release(&server->context.router);
    free(server);
}

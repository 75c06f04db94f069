/* connection.c - a connection and its requests, from the first byte to the log record. */
#include "service/http/server_private.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "handlers/reply/problem.h"
#include "storage/base/clock.h"

void connection_enter(struct connection *connection, enum request_state state)
{
    static const unsigned from[] = {
        [REQUEST_HEAD] = 1u << REQUEST_DONE,
        [REQUEST_BODY] = 1u << REQUEST_HEAD,
        [REQUEST_WAIT] = 1u << REQUEST_BODY | 1u << REQUEST_MADE,
        [REQUEST_MADE] = 1u << REQUEST_WAIT,
        [REQUEST_REPLY] = 1u << REQUEST_HEAD | 1u << REQUEST_BODY | 1u << REQUEST_MADE,
        /* A request may end in any state: its client leaves, or the library refuses what
         * follows. */
        [REQUEST_DONE] = 1u << REQUEST_HEAD | 1u << REQUEST_BODY | 1u << REQUEST_WAIT |
                         1u << REQUEST_MADE | 1u << REQUEST_REPLY,
    };
    assert((from[state] >> connection->state & 1) != 0);
    (void)from;
    connection->state = state;
}

/* ---- requests ---- */

struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* Keep the library from parsing the query.  Each argument takes 56 bytes of connection memory, and
 * the library (0.9.75) never answers a request whose arguments do not fit.  The library parses up
 * to a NUL behind the '?', which it found before it called http_on_target().  The bytes are the
 * library's own, and it is about to cut them anyway. */
static void hide_query(const char *target, size_t n)
{
    char *mark = memchr((char *)(uintptr_t)target, '?', n);
    if (mark != NULL) {
        mark[1] = '\0';
    }
}

bool connection_begin(struct connection *connection, struct slice target)
{
    struct http_server *server = connection->server;
    if (!request_begin(&connection->request, &server->context, target)) {
        return false;
    }
    connection->began_us = monotonic_us();
    connection->pieces = 0;
    connection->due_ms = reaper_began_ms(&connection->watch, connection->began_us / 1000) +
                         server->config.request_timeout_ms;
    connection_enter(connection, REQUEST_HEAD);
    if (!reaper_busy(&connection->watch, connection->due_ms)) {
        request_end(&connection->request);
        connection_enter(connection, REQUEST_DONE);
        return false;
    }
    return true;
}

/* The request line has come: a request begins.  The result becomes *state of http_on_request(). */
void *http_on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    size_t n = strlen(target);
    (void)cls;
    if (connection == NULL || !connection_begin(connection, (struct slice){target, n})) {
        return NULL;
    }
    hide_query(target, n);
    connection->target_in_head = target;
    return connection;
}

static void observe(const struct connection *connection, unsigned status, int64_t ended_us)
{
    const struct http_server_config *config = &connection->server->config;
    const struct route *route = connection->request.route;
    if (config->observe != NULL) {
        config->observe(config->metrics,
            route != NULL ? (size_t)(route - config->routes) : config->n_routes, status,
            ended_us - connection->began_us);
    }
}

/* The request is over, and its memory is given back. */
static void end_request(struct connection *connection)
{
    connection_enter(connection, REQUEST_DONE);
    request_end(&connection->request);
    connection->head_read = false;
    atomic_store_explicit(&connection->named, false, memory_order_relaxed);
}

static void free_connection(struct connection *connection)
{
    connection_forget_answer(connection);
    free(connection);
}

/* The job is done, and nobody waits for the answer.  The answer is made all the same, because
 * finish() counts. */
static void finish_unheard(struct connection *connection)
{
    struct http_exchange *exchange = &connection->request.exchange;
    request_finish(&connection->request);
    if (!exchange->again) {
        observe(connection, exchange->response.status, monotonic_us());
    }
}

void connection_finish_orphan(struct connection *connection)
{
    finish_unheard(connection);
    if (connection->request.exchange.again) {
        connection->request.exchange.again = false;
        if (connection_lend(connection)) {
            return;
        }
    }
    end_request(connection);
    free_connection(connection);
}

void connection_end(struct connection *connection)
{
    int64_t now = monotonic_us();
    if (connection->state == REQUEST_REPLY) {
        observe(connection, connection->request.exchange.response.status, now);
    } else if (connection->state == REQUEST_WAIT) {
        finish_unheard(connection);
    } else if (reaper_dismissed(&connection->watch)) {
        observe(connection, problem_status(PROBLEM_SLOW), now);
    }
    end_request(connection);
}

/* The client has left while storage has the job: the connection ends without its request, which
 * stays until the job is done.  False: the job is done. */
static bool abandon(struct connection *connection)
{
    enum lent out = LENT_OUT;
    return connection->state == REQUEST_WAIT &&
           atomic_compare_exchange_strong(&connection->lent, &out, LENT_ABANDONED);
}

/* The request is over: answered, refused by the library, or lost with its connection. */
void http_on_completed(
    void *cls, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why)
{
    struct connection *connection = *state;
    (void)cls;
    (void)mhd;
    if (connection == NULL) {
        return;
    }
    *state = NULL;
    connection->worker->moved = true;
    connection->worker->waiting -= connection->state == REQUEST_WAIT;
    if (abandon(connection)) {
        return;
    }
    connection_end(connection);
    if (why != MHD_REQUEST_TERMINATED_COMPLETED_OK) { /* part of the request may be unread */
        connection->consumed = REAPER_UNKNOWN;
    }
    reaper_idle(&connection->watch, monotonic_ms(), connection->consumed);
}

/* ---- connections ---- */

/* The peer's address as text; "" if the peer has none, as on a unix socket. */
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
        return; /* http_on_target() gives up */
    }
    connection->server = worker->server;
    connection->worker = worker;
    connection->mhd = mhd;
    connection->kept.response = NULL;
    connection->consumed = 0;
    connection->linger = connection->head_read = false;
    atomic_init(&connection->lent, LENT_NOT);
    atomic_init(&connection->named, false);
    connection->state = REQUEST_DONE;
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    name_peer(from != NULL ? from->client_addr : NULL, connection->peer, sizeof(connection->peer));
    reaper_watch(worker->server->reaper, &connection->watch, info->connect_fd, monotonic_ms());
}

/* So many bytes may follow a request: an empty line, which many clients send, and the stream's
 * end. */
#define NO_REQUEST_BYTES 4

/* Did bytes come that the library took for no request?  The library closes the connection without a
 * call behind a request line that begins with a blank, or has none.  Where a request was refused,
 * or came in part, or was chunked, that is not known. */
static bool is_unanswered(const struct connection *connection)
{
    uint64_t received = connection->state == REQUEST_DONE && !connection->linger &&
                                connection->consumed != REAPER_UNKNOWN &&
                                !reaper_dismissed(&connection->watch)
                            ? reaper_received(&connection->watch)
                            : REAPER_UNKNOWN;
    return received != REAPER_UNKNOWN && received > connection->consumed + NO_REQUEST_BYTES;
}

static void close_connection(void **context)
{
    struct connection *connection = *context;
    if (connection == NULL) {
        return;
    }
    struct reaper *reaper = connection->server->reaper;
    int fd = connection->watch.fd;
    atomic_fetch_add(&connection->server->unanswered, is_unanswered(connection));
    reaper_forget(reaper, &connection->watch); /* the library closes fd after this */
    int copy = connection->linger ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy >= 0) {
        reaper_linger(reaper, copy);
    }
    if (connection->state == REQUEST_DONE) { /* else storage has the exchange: see abandon() */
        free_connection(connection);
    }
    *context = NULL;
}

void http_on_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        open_connection(cls, mhd, context);
    } else {
        struct worker *worker = cls;
        close_connection(context);
        worker->n_closed++;
        worker_left(worker);
    }
}

#include "service/http/server.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "service/http/listen_socket.h"
#include "service/http/server_private.h"
#include "storage/base/clock.h"

/* Bytes for the library, a connection.  They hold a head of 12 KiB with HTTP_FIELDS_MAX fields, a
 * record of 64 bytes for each field, and the answer's head.  The library clears this memory after
 * every request, so each KiB costs time. */
#define CONNECTION_MEMORY ((size_t)20 * 1024)

/* poll() looks at all connections each time, and epoll at those that are ready.  But to suspend and
 * resume a connection costs the library (0.9.75) two epoll_ctl() and a vain recv() with epoll, and
 * nothing with poll().  Measured with 64 connections and two threads: 10 % more single events a
 * second with poll().  With 2,000 idle connections beside them: a third of what epoll does. */
#define POLLED_MAX 64 /* connections a thread that polls */

/* Each thread is a daemon of the library's, without a socket to listen on.  The library's own pool
 * is not used, because hand_over() decides which thread gets a connection. */
static bool start_worker(struct http_server *server, struct worker *worker, unsigned how)
{
    worker->server = server;
    worker->daemon =
        MHD_start_daemon(how | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
            http_on_request, server, MHD_OPTION_CONNECTION_LIMIT, server->config.max_connections,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
            http_on_connection, worker, MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, server,
            MHD_OPTION_URI_LOG_CALLBACK, http_on_target, server, MHD_OPTION_END);
    return worker->daemon != NULL;
}

static bool start_workers(struct http_server *server)
{
    unsigned threads = server->config.threads;
    while (server->n_workers < 2 * threads) {
        unsigned how = server->n_workers < threads ? MHD_USE_POLL_INTERNAL_THREAD
                                                   : MHD_USE_EPOLL_INTERNAL_THREAD;
        if (!start_worker(server, &server->workers[server->n_workers], how)) {
            return false;
        }
        server->n_workers++;
    }
    return true;
}

/* The worker with the fewest connections, of @n. */
static struct worker *least_busy(struct worker *workers, unsigned n)
{
    struct worker *least = workers;
    for (unsigned i = 1; i < n; i++) {
        if (atomic_load(&workers[i].open) < atomic_load(&least->open)) {
            least = &workers[i];
        }
    }
    return least;
}

/* On the acceptor's thread. */
static void hand_over(void *data, int fd, const struct sockaddr *peer, socklen_t peer_n)
{
    struct http_server *server = data;
    unsigned threads = server->config.threads;
    struct worker *worker = least_busy(server->workers, threads);
    if (atomic_load(&worker->open) >= POLLED_MAX) {
        worker = least_busy(server->workers + threads, threads);
    }
    (void)atomic_fetch_add(&worker->open, 1);
    if (MHD_add_connection(worker->daemon, fd, peer, peer_n) != MHD_YES) { /* fd is closed then */
        worker_left(worker);
    }
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
    server->reaper =
        reaper_start(config->request_timeout_ms, config->idle_timeout_ms, http_farewell);
    if (server->reaper == NULL) {
        return "a thread cannot be started";
    }
    server->listen_fd = listen_socket_open(config->host, config->port, &server->port, &error);
    if (server->listen_fd < 0) {
        return error;
    }
    if (!start_workers(server)) {
        return "the HTTP library cannot be started";
    }
    bool accepts = acceptor_start(
        &server->acceptor, server->listen_fd, config->max_connections, hand_over, server);
    return accepts ? NULL : "a thread cannot be started";
}

struct http_server *http_server_start(
    const struct http_server_config *config, const char **ret_error)
{
    assert(config->threads >= 1 && config->max_connections >= 1);
    struct http_server *server =
        calloc(1, sizeof(*server) + (size_t)2 * config->threads * sizeof(struct worker));
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
    acceptor_quiesce(&server->acceptor);
    if (server->listen_fd >= 0) {
        (void)close(server->listen_fd);
    }
}

void http_server_wait_idle(struct http_server *server, int64_t grace_ms)
{
    (void)reaper_wait_idle(server->reaper, monotonic_ms() + grace_ms);
}

void http_server_stop(struct http_server *server, int64_t grace_ms)
{
    if (server == NULL) {
        return;
    }
    if (grace_ms <= 0) {
        /* From the moment on when nobody can connect any more. */
        atomic_store(&server->stopping, true);
    }
    http_server_quiesce(server);
    if (server->reaper != NULL) {
        (void)reaper_wait_idle(server->reaper, monotonic_ms() + grace_ms);
    }
    atomic_store(&server->stopping, true);
    while (atomic_load(&server->lent) > 0) { /* storage's last jobs: each has a deadline */
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    for (unsigned i = 0; i < server->n_workers; i++) {
        MHD_stop_daemon(server->workers[i].daemon);
    }
    reaper_stop(server->reaper);
    acceptor_stop(&server->acceptor);
    router_release(&server->context.router);
    free(server);
}

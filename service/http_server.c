#include "service/http_server.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "service/http_connection.h"
#include "service/listen_socket.h"

/* Takes a head of 12 KiB that has HTTP_FIELDS_MAX fields, a record of 64 bytes for each and the
 * answer's own head included.  It is cleared after every request, so each KiB costs. */
#define CONNECTION_MEMORY ((size_t)20 * 1024)

static bool start_daemons(struct http_server *server)
{
    const struct http_server_config *config = &server->config;
    unsigned limit = config->max_connections / config->threads;
    while (server->n_workers < config->threads) {
        struct worker *worker = &server->workers[server->n_workers];
        worker->server = server;
        worker->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME,
            0, NULL, NULL, http_on_request, server, MHD_OPTION_LISTEN_SOCKET, server->listen_fd,
            MHD_OPTION_CONNECTION_LIMIT, limit > 0 ? limit : 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, worker,
            MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, server, MHD_OPTION_URI_LOG_CALLBACK,
            http_on_target, server, MHD_OPTION_END);
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

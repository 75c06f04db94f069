#include "service/http/server.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "service/http/listen_socket.h"
#include "service/http/server_private.h"
#include "storage/base/clock.h"

static bool start_workers(struct http_server *server)
{
    bool ok = true;
    while (ok && server->n_workers < server->config.threads) {
        ok = worker_start(server, &server->workers[server->n_workers++]);
    }
    return ok;
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

/* Runs on the acceptor's thread. */
static void hand_over(void *data, int fd, const struct sockaddr *peer, socklen_t peer_n)
{
    struct http_server *server = data;
    struct worker *worker = least_busy(server->workers, server->n_workers);
    (void)atomic_fetch_add(&worker->open, 1);
    worker_take(worker, fd, peer, peer_n);
}

static void make_room(void *data)
{
    struct http_server *server = data;
    reaper_make_room(server->reaper);
}

static const char *start(struct http_server *server)
{
    const struct http_server_config *config = &server->config;
    const char *error;
    if (!router_init(&server->context.router, config->routes, config->n_routes)) {
        return "out of memory";
    }
    if (!library_bind()) {
        return "the HTTP library lacks a function";
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
    bool accepts = acceptor_start(&server->acceptor, server->listen_fd, config->max_connections,
        hand_over, make_room, server);
    return accepts ? NULL : "a thread cannot be started";
}

struct http_server *http_server_start(
    const struct http_server_config *config, const char **ret_error)
{
    assert(config->threads >= 1 && config->max_connections >= 1);
    struct http_server *server =
        calloc(1, sizeof(*server) + config->threads * sizeof(struct worker));
    if (server == NULL) {
        *ret_error = "out of memory";
        return NULL;
    }
    server->config = *config;
    atomic_init(&server->context.app, config->app);
    server->context.tokens = config->tokens;
    server->context.max_body = config->max_body;
    /* One body of max_body must fit, with what zlib takes: else its client would get 503 for
     * ever. */
    size_t largest = config->max_body + BODY_INFLATE_MEM;
    server->context.budget.max =
        config->max_body_memory > largest ? config->max_body_memory : largest;
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
    struct reaper_counts counts = reaper_count(server->reaper);
    *ret = (struct http_server_stats){
        .connections = (int64_t)counts.connections,
        .suspended = atomic_load(&server->lent),
        .body_bytes = (int64_t)atomic_load(&server->context.budget.used),
        .late = (int64_t)counts.late,
        .shed = (int64_t)counts.shed,
        .unanswered = atomic_load(&server->unanswered),
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
        /* Without grace, requests that need storage get 503 at once. */
        atomic_store(&server->stopping, true);
    }
    http_server_quiesce(server);
    if (server->reaper != NULL) {
        (void)reaper_wait_idle(server->reaper, monotonic_ms() + grace_ms);
    }
    atomic_store(&server->stopping, true);
    while (atomic_load(&server->lent) > 0) { /* storage has these jobs, each with a deadline */
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    for (unsigned i = 0; i < server->n_workers; i++) {
        worker_stop(&server->workers[i]);
    }
    reaper_stop(server->reaper);
    acceptor_stop(&server->acceptor);
    router_release(&server->context.router);
    free(server);
}

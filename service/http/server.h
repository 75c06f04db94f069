/* server.h - the HTTP transport: from a socket to an http_exchange and back.
 *
 * Layer: service.  Only the files behind http/server_private.h know libmicrohttpd.
 *
 * Each thread serves its own connections and never waits for storage: a handler that returns
 * HANDLER_WAIT has its job submitted and its connection suspended until the job is done, on
 * whatever thread.  `threads` of them poll the first connections, up to 64 each; the crowd beyond
 * is served by as many more with epoll.  A request passes HEAD -> BODY -> (WAIT ->) REPLY -> DONE.
 *
 * What the server answers itself, as a problem document with X-Request-Id like all answers: 400 for
 * a head or a gzip stream that is not sound (http/strict.h), 404, 405 with Allow, 413 over max_body
 * (at once if Content-Length says so; a chunked body is read to its end first), 415 for an unknown
 * Content-Encoding, 431 for too many header fields, 503 if the bodies in flight hold
 * max_body_memory or the server stops.  What libmicrohttpd refuses before any of this has its own
 * plain 400, 413, 414, 431 or 505.
 *
 * request_timeout_ms is absolute, for head, body and storage together: a client that has not sent
 * its request by then is cut off, and the deadline given to storage leaves time for the answer.
 *
 * Thread safety: start, quiesce and stop from one thread; port and stats from any.
 */
#ifndef SERVICE_HTTP_SERVER_H
#define SERVICE_HTTP_SERVER_H

#include <stdint.h>

#include "service/http/server_config.h"

/*   field         kind     metric's name                           help */
#define HTTP_STATS(X)                                                                              \
    X(connections, GAUGE, "tallyd_http_connections", "Connections that are open.")                 \
    X(suspended, GAUGE, "tallyd_http_suspended", "Requests that wait for storage.")                \
    X(body_bytes, GAUGE, "tallyd_http_body_bytes", "Memory held by bodies in flight.")             \
    X(late, COUNTER, "tallyd_http_late_total",                                                     \
        "Requests that did not come whole in time (408), and answers not taken in time.")          \
    X(refused_head, COUNTER, "tallyd_http_refused_head_total",                                     \
        "Requests whose head was not sound.")                                                      \
    X(refused_large, COUNTER, "tallyd_http_refused_large_total",                                   \
        "Requests with too large a body.")                                                         \
    X(refused_memory, COUNTER, "tallyd_http_refused_memory_total",                                 \
        "Requests refused for want of body memory.")

struct http_server_stats {
#define X(field, kind, name, help) int64_t field;
    HTTP_STATS(X)
#undef X
};

struct http_server;

/* Listen and serve.  @config is copied; what it points to must outlive the server.  On failure
 * returns NULL, and @ret_error names the fault (static text). */
struct http_server *http_server_start(
    const struct http_server_config *config, const char **ret_error) MUST_CHECK;

/* Requests that begin from now on have @app, which must outlive the server.  Any thread. */
void http_server_set_app(struct http_server *server, const struct app *app);

/* The port that is listened on, also where the system chose it. */
uint16_t http_server_port(const struct http_server *server);

/* Sums over all threads, each figure of its own moment. */
void http_server_stats(struct http_server *server, struct http_server_stats *ret);

/* Stop listening: new connections are refused.  Those that are open are served on, each answer with
 * "Connection: close". */
void http_server_quiesce(struct http_server *server);

/* After that: wait until no request is under way, for @grace_ms at most. */
void http_server_wait_idle(struct http_server *server, int64_t grace_ms);

/* Quiesce; wait until no request is in progress, at most @grace_ms; answer what comes after that
 * with 503; wait for the jobs that are still lent (storage_drain before this call, and none is);
 * then close all connections and free.  NULL is fine. */
void http_server_stop(struct http_server *server, int64_t grace_ms);

#endif

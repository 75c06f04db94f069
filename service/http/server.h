/* server.h - the HTTP server: it turns bytes from a socket into an http_exchange, and back.
 *
 * Layer: service.  Only the files behind http/server_private.h know libmicrohttpd.
 *
 * Each thread serves its own connections and never waits for storage.  A handler that returns
 * HANDLER_WAIT has its job submitted, and the client waits until the job is done.
 *
 * The server itself answers some requests, with a problem document and X-Request-Id:
 *
 *   400  a head or a gzip stream that is not sound (http/strict.h)
 *   401  no token, or an unknown one (service/tokens/)
 *   403  a token without the scope that the route asks for
 *   404  no such path
 *   405  another method, with Allow
 *   408  a request that did not come whole in time
 *   413  more than max_body: at once by Content-Length, else when so much of the body has come
 *   415  an unknown Content-Encoding
 *   431  too many header fields
 *   503  the bodies in flight hold max_body_memory, or the server stops
 *
 * What libmicrohttpd refuses before that, with 400, 413, 414, 431 or 505, becomes such a problem,
 * too (http/interposed.c).
 *
 * request_timeout_ms is absolute, for head, body and storage together.  A client that has not sent
 * its request by then is cut off.  The deadline given to storage leaves time for the answer.
 *
 * Thread safety: start, quiesce, wait_idle and stop from one thread; the others from any.
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
    X(shed, COUNTER, "tallyd_http_shed_total",                                                     \
        "Connections that were silent or slow, and closed because --max-connections were open.")   \
    X(unanswered, COUNTER, "tallyd_http_unanswered_total",                                         \
        "Connections that ended behind bytes that never became a request, as a request line "      \
        "without a blank, which gets no answer.")                                                  \
    X(refused_head, COUNTER, "tallyd_http_refused_head_total",                                     \
        "Requests whose head, or the framing of whose body, was not sound.")                       \
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

/* Listen and serve.  @config is copied; what it points to must outlive the server.  NULL:
 * *ret_error, a static text, names the fault. */
struct http_server *http_server_start(
    const struct http_server_config *config, const char **ret_error) MUST_CHECK;

/* Give @app, which must outlive the server, to requests that begin from now on. */
void http_server_set_app(struct http_server *server, const struct app *app);

/* The port that the server listens on, also where the system chose the port. */
uint16_t http_server_port(const struct http_server *server);

/* Sums over all threads.  Each figure is of its own moment. */
void http_server_stats(struct http_server *server, struct http_server_stats *ret);

/* Stop listening: new connections are refused.  Open connections are served on, with "Connection:
 * close" in each answer. */
void http_server_quiesce(struct http_server *server);

/* Wait until no request is under way, for @grace_ms at most.  After http_server_quiesce(). */
void http_server_wait_idle(struct http_server *server, int64_t grace_ms);

/* Stop the server and free it, in this order.  NULL is fine.
 *
 *   1. Quiesce, and wait until no request is in progress, at most @grace_ms.
 *   2. Answer what comes after that with 503.
 *   3. Wait for the jobs that are still lent.  After storage_drain() there are none.
 *   4. Close all connections. */
void http_server_stop(struct http_server *server, int64_t grace_ms);

#endif

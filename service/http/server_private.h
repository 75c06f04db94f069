/* server_private.h - the inside of the HTTP server: its threads, connections and requests.
 *
 * Layer: service, private to the seven files below; they alone may include it, and microhttpd.h is
 * included here alone.  libmicrohttpd reads and writes the sockets and calls these files.
 *
 *   http/server.c      starts and stops the server
 *   http/worker.c      a thread with its connections: what wakes it, and when the library runs
 *   http/connection.c  connections and requests begin and end
 *   http/steps.c       what lies between: head, body, storage
 *   http/answer.c      the answer to a request
 *   http/farewell.c    the answer to a request that never came whole
 *   http/interposed.c  the answer to a request that the library cannot parse
 *
 * Ownership: a connection belongs to the HTTP thread of its worker.  While its job is lent to
 * storage, the exchange is storage's; on_job_done() in http/steps.c gives it back.  The server
 * outlives all connections.
 * Thread safety: each function runs on the connection's own thread, unless it says otherwise.
 */
#ifndef SERVICE_HTTP_SERVER_PRIVATE_H
#define SERVICE_HTTP_SERVER_PRIVATE_H

#include <netinet/in.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include "service/http/acceptor.h"
#include "service/http/reaper.h"
#include "service/http/request.h"
#include "service/http/request_id.h"
#include "service/http/server_config.h"

enum request_state {
    REQUEST_DONE,  /* no request is in progress */
    REQUEST_HEAD,  /* the target is known, fields are coming */
    REQUEST_BODY,  /* the head was judged, the rest is coming */
    REQUEST_WAIT,  /* the job is lent to storage, or is done and not taken back yet */
    REQUEST_MADE,  /* the job is back, and the answer is being made of it */
    REQUEST_REPLY, /* the answer is queued */
};

struct connection;

/* Who owns an exchange. */
enum lent {
    LENT_NOT,       /* the HTTP thread's: never lent, or given back */
    LENT_OUT,       /* storage's */
    LENT_ABANDONED, /* storage's, and its connection has ended meanwhile */
};

/* A connection on its way to a worker. */
struct arrival;

/* An HTTP thread with its connections: it runs a daemon of the library's. */
struct worker {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    int epoll_fd, wake_fd; /* readable when the library, or another thread, has something to do */
    pthread_t thread;
    bool running;     /* the thread was started; read where the server stops */
    atomic_uint open; /* connections handed to it that are not closed yet */

    /* Other threads write these for this one. */
    atomic_bool stop;
    atomic_bool sleeps;    /* the thread sleeps, or is about to, and must be woken */
    _Atomic uint64_t news; /* counts what other threads have brought */
    _Atomic(struct arrival *) arrivals;
    _Atomic(struct connection *) orphans; /* their jobs are done, and their clients are gone */

    /* The thread's own. */
    uint64_t seen_news;
    unsigned waiting;   /* connections whose jobs are lent */
    bool moved;         /* a request went on: the library may have more to do at once */
    unsigned vain_runs; /* runs in a row in which no request went on */
    bool submitted;     /* jobs were submitted since storage was told to begin */
    unsigned n_closed;  /* connections that the library has reported as closed */
};

/* The last small answer on a connection, which is often the next one's, too. */
struct kept_answer {
    struct MHD_Response *response; /* an owned reference, which owns `body`; NULL: none */
    const char *content_type, *body;
    size_t body_n;
};

/* One connection and the request in progress on it.  There is at most one such request, so its
 * memory is reused. */
struct connection {
    struct http_server *server;
    struct worker *worker;
    struct MHD_Connection *mhd;
    struct reaper_entry watch;
    uint64_t consumed; /* bytes of the requests so far, or REAPER_UNKNOWN */
    uint64_t wire;     /* bytes received when the body's framing was first looked at */
    unsigned pieces;   /* pieces of the request's body so far */
    bool linger;       /* input may still come when the socket is closed */
    bool head_read;    /* the library has read the head of the request, and may judge it */
    char peer[INET6_ADDRSTRLEN];
    struct kept_answer kept;

    /* Valid from http_on_target() to http_on_completed(). */
    enum request_state state;
    int64_t began_us, due_ms; /* CLOCK_MONOTONIC */
    _Atomic enum lent lent;
    struct connection *next_orphan; /* the next in the list worker->orphans */
    const char *target_in_head;     /* the library's own; request.target is a copy */
    char id[HTTP_ID_MAX + 1];
    _Atomic bool named; /* id is final, and the reaper may read it */
    struct request request;
};

struct http_server {
    struct http_server_config config;
    struct request_context context;
    struct request_ids ids;
    struct reaper *reaper;
    struct acceptor acceptor;
    int listen_fd;
    uint16_t port;

    atomic_bool quiesced, stopping; /* set in http/server.c, once */
    _Atomic int64_t lent;           /* requests whose job storage has */
    _Atomic int64_t unanswered;     /* connections that ended behind bytes that were no request */

    unsigned n_workers; /* worker_start() was called for so many */
    struct worker workers[];
};

/* The connection that the library knows as @mhd; NULL: there was no memory for it. */
struct connection *connection_of(struct MHD_Connection *mhd);

/* A request for @target begins on @connection.  False: no memory, or the reaper has ended the
 * connection. */
bool connection_begin(struct connection *connection, struct slice target) MUST_CHECK;

/* Give the request the id @given, or a new id where @given is no valid one. */
void connection_name(struct connection *connection, struct slice given);

/* Queue the filled response of the request.  MHD_NO: the connection must be closed without a
 * response. */
enum MHD_Result connection_reply(struct connection *connection) MUST_CHECK;

/* Free the answer that the connection keeps, if there is one. */
void connection_forget_answer(struct connection *connection);

/* Send the filled response of the request to the socket, past the library, and have the connection
 * closed: MHD_NO. */
enum MHD_Result connection_farewell(struct connection *connection) MUST_CHECK;

/* The request is over: count it, and give its memory back. */
void connection_end(struct connection *connection);

/* Go on to @state.  Asserts that @state may follow the present one. */
void connection_enter(struct connection *connection, enum request_state state);

/* Lend the job of @connection to storage.  True: it is storage's, or is done already.  False: the
 * server stops, and nothing was done. */
bool connection_lend(struct connection *connection);

/* @connection has ended while its job was lent, and now the job is done: do what is left, and free
 * the connection, or lend the next job. */
void connection_finish_orphan(struct connection *connection);

/* ---- the library's own functions: interposed.c ---- */

/* Find the library's own functions.  False: this is no libmicrohttpd that can be used.  Any thread
 * may call this, before the first daemon is started. */
bool library_bind(void) MUST_CHECK;

/* Call the library's own MHD_queue_response(); no other function may. */
enum MHD_Result library_queue(
    struct MHD_Connection *mhd, unsigned status, struct MHD_Response *response) MUST_CHECK;

/* ---- workers ---- */

/* Start a worker.  False: no thread, no descriptor, or the library refuses.  worker_stop() must be
 * called in any case. */
bool worker_start(struct http_server *server, struct worker *worker);

/* Stop a worker, close its connections and release it.  No job may be lent any more. */
void worker_stop(struct worker *worker);

/* Give @worker the connection @fd, which is the worker's from now on.  Any thread may call this. */
void worker_take(struct worker *worker, int fd, const struct sockaddr *peer, socklen_t peer_n);

/* Wake the thread of @worker, because there are news for it.  Any thread may call this. */
void worker_wake(struct worker *worker);

/* Answer 408 to a request that did not come whole in time, or soon enough: a reaper_farewell. */
void http_farewell(const struct reaper_entry *watch, bool for_room);

/* Send the filled @response on @connection past the library, which must send nothing behind it. */
void farewell_send(struct connection *connection, const struct http_response *response);

/* A connection that was given to @worker has ended. */
void worker_left(struct worker *worker);

/* These are the functions that libmicrohttpd calls.  @cls is the server, for http_on_connection()
 * the worker. */
void http_on_connection(void *cls, struct MHD_Connection *mhd, void **context,
    enum MHD_ConnectionNotificationCode what);
void *http_on_target(void *cls, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_n, void **state);
void http_on_completed(
    void *cls, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why);

#endif

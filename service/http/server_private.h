/* server_private.h - the inside of the HTTP server: its threads, connections and requests.
 *
 * Layer: service, private to the four files below; they alone may include it, and microhttpd.h is
 * included here alone.  libmicrohttpd reads and writes the sockets and calls these files.
 *
 *   http/server.c      starts and stops the server
 *   http/connection.c  connections and requests begin and end
 *   http/steps.c       what lies between: head, body, storage, answer
 *   http/farewell.c    the answer to a request that never came whole
 *
 * Ownership: a connection belongs to the HTTP thread of its worker.  While its job is lent to
 * storage, only on_job_done() in http/steps.c touches the connection.  The server outlives all
 * connections.
 * Thread safety: each function runs on the connection's own thread.
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

#define HTTP_ID_MAX 128

enum request_state {
    REQUEST_DONE,  /* none in progress */
    REQUEST_HEAD,  /* the target is known, fields are coming */
    REQUEST_BODY,  /* the head was judged, the rest is coming */
    REQUEST_WAIT,  /* the job is lent to storage, or is done and its connection resumed */
    REQUEST_REPLY, /* the answer is queued */
};

struct connection;

/* One thread of the library's. */
struct worker {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    atomic_uint open;                   /* connections handed to it that are not closed yet */
    _Atomic(struct connection *) ready; /* their jobs are done; this thread resumes them */
};

/* One connection and the request in progress on it.  There is at most one such request, so its
 * memory is reused. */
struct connection {
    struct http_server *server;
    struct worker *worker;
    struct MHD_Connection *mhd;
    struct reaper_entry watch;
    uint64_t consumed; /* bytes of the requests so far, or REAPER_UNKNOWN */
    bool linger;       /* closed with input still coming */
    char peer[INET6_ADDRSTRLEN];

    /* Valid from http_on_target() to http_on_completed(). */
    enum request_state state;
    int64_t began_us, due_ms;
    struct connection *next_ready; /* on worker->ready */
    bool wakes;                    /* was resumed for all connections on worker->ready */
    const char *target_in_head;    /* where the library keeps what request.target is a copy of */
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
    _Atomic int64_t lent;           /* connections suspended, or being resumed */

    unsigned n_workers; /* running: first config.threads that poll, then as many with epoll */
    struct worker workers[];
};

/* Go on to @state.  Asserts that @state may follow the present one. */
void connection_enter(struct connection *connection, enum request_state state);

/* Resume the other connections of a burst.  Of jobs that come back in a burst, storage's thread
 * resumes only the first connection, the one that `wakes`.  This function is called when the
 * library calls for that connection, or when its client has left. */
void connection_resume_ready(struct connection *waker);

/* Answer 408 to a request that did not come whole in time: a reaper_farewell. */
void http_farewell(const struct reaper_entry *watch);

/* A connection that was handed to @worker has ended. */
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

/* request.h - one request, from its head to its response, as steps without a network.
 *
 * Layer: service.  Knows no HTTP library, no socket, no thread and no clock.  http/steps.c gets the
 * bytes from the network and calls these steps:
 *
 *   begin -> head -> upload* -> run -> (finish) -> end
 *
 * A fault on the way fills exchange.response with a problem.  From then on nothing more is looked
 * at, and request_run() returns HANDLER_REPLY.
 *
 * Ownership: a request copies its target and its body.  Other slices point into the head, which
 * must last until request_end().
 * Thread safety: a request belongs to one thread at a time; the context is shared, read-only or
 * atomic.
 */
#ifndef SERVICE_HTTP_REQUEST_H
#define SERVICE_HTTP_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "handlers/reply/problem.h"
#include "service/http/body.h"
#include "service/http/router.h"
#include "service/http/strict.h"
#include "service/tokens/tokens.h"
#include "storage/base/compiler.h"

/* In bytes.  A longer target or body is copied to the heap.  A refused body of at most
 * REQUEST_SWALLOW_MAX is read, so that the connection can stay. */
#define REQUEST_TARGET_SMALL 512
#define REQUEST_BODY_SMALL   2048
#define REQUEST_SWALLOW_MAX  (64 * 1024)

/* A chunk of one byte takes six bytes on the wire.  So a chunked body may take max_body times this
 * factor, with its framing. */
#define REQUEST_FRAMING_FACTOR 8

/* What the requests of a server share. */
struct request_context {
    _Atomic(const struct app *) app; /* requests that begin now get this */
    struct router router;
    struct tokens *tokens; /* NULL: no request needs a token */
    struct body_budget budget;
    size_t max_body;
    _Atomic int64_t refused_head, refused_large, refused_memory; /* counters */
};

struct request {
    struct request_context *context;
    struct slice target; /* a copy of all of it, not decoded */
    struct http_message message;
    const struct route *route; /* NULL until found */
    struct http_exchange exchange;

    /* Private. */
    unsigned flags;           /* ROUTE_* bits: how a refusal looks where `route` is NULL */
    bool refused;             /* the response is filled */
    bool discard;             /* the route takes no body */
    bool starved;             /* the answer's JSON got too little memory: json_memory.h */
    bool preflight;           /* a browser asks on behalf of a page of another origin */
    struct token_set *tokens; /* held for exchange.access; NULL: none */
    uint64_t uploaded;        /* bytes of the body so far, as they came */
    struct body body;
    char *target_heap; /* owned, or NULL */
    char target_small[REQUEST_TARGET_SMALL];
    char body_small[REQUEST_BODY_SMALL];
};

/* Begin a request for @target, in memory that is uninitialised or whose request has ended.  False:
 * out of memory. */
bool request_begin(
    struct request *request, struct request_context *context, struct slice target) MUST_CHECK;

enum request_verdict {
    REQUEST_GO_ON,      /* read the body, if any, then run */
    REQUEST_ANSWER_NOW, /* the response is filled: send it, leave the body unread, and close */
};

/* Judge the head: is it sound, which route is it for, may the body come?  @head.target may be the
 * HTTP library's own. */
enum request_verdict request_head(struct request *request, const struct http_head *head) MUST_CHECK;

/* Refuse a request whose head, or the framing of whose body, is not sound: fill the response, and
 * count the refusal. */
void request_refuse(struct request *request, enum problem problem, const char *detail);

/* Take the next piece of the body, @n bytes at @p.  @framing is how many bytes the body has taken
 * on the wire so far, or 0 where that was not looked at.  REQUEST_ANSWER_NOW: the body's length was
 * not announced, and more than max_body has come of it, or far more framing than any client
 * needs. */
enum request_verdict request_upload(
    struct request *request, const char *p, size_t n, uint64_t framing) MUST_CHECK;

/* The request is complete: call the handler.  HANDLER_REPLY: the response is filled.  HANDLER_WAIT:
 * submit the exchange's job, and call request_finish() when the job is done. */
enum handler_result request_run(struct request *request, int64_t now_ms) MUST_CHECK;
void request_finish(struct request *request);

/* Add what belongs to every answer of the route to the filled response.  Call this once. */
void request_dress(struct request *request);

/* Free what the request holds, at any step. */
void request_end(struct request *request);

#endif

/* request.h - one request, from its head to its response, as steps without a network.
 *
 * Layer: service.  Knows no HTTP library, no socket, no thread and no clock: http/steps.c feeds it.
 *
 * begin -> head -> upload* -> run -> (finish) -> end.  Whatever is wrong on the way fills
 * exchange.response with a problem; from then on nothing more is looked at, and run returns
 * HANDLER_REPLY.
 *
 * Ownership: a request copies its target and its body.  Other slices point into the head, which
 * must last until request_end(). Thread safety: a request belongs to one thread at a time; the
 * context is shared, read-only or atomic.
 */
#ifndef SERVICE_HTTP_REQUEST_H
#define SERVICE_HTTP_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "service/http/body.h"
#include "service/http/router.h"
#include "service/http/strict.h"
#include "service/tokens/tokens.h"

#define REQUEST_TARGET_SMALL 512  /* bytes; a longer target is copied to the heap */
#define REQUEST_BODY_SMALL   2048 /* a longer body too */
#define REQUEST_SWALLOW_MAX                                                                        \
    (64 * 1024) /* a refused body up to this is read, to keep the connection */

/* What the requests of a server share. */
struct request_context {
    _Atomic(const struct app *) app; /* requests that begin now have this one */
    struct router router;
    struct tokens *tokens; /* NULL: nobody needs one */
    struct body_budget budget;
    size_t max_body;
    _Atomic int64_t refused_head, refused_large, refused_memory; /* counters */
};

struct request {
    struct request_context *context;
    struct slice target; /* a copy, whole and not decoded */
    struct http_message message;
    const struct route *route; /* NULL until found */
    struct http_exchange exchange;

    /* Private. */
    bool refused;             /* the response is filled */
    bool discard;             /* the route takes no body */
    bool starved;             /* its JSON did not get all the memory it asked for: json_memory.h */
    bool preflight;           /* a browser asks whether a page of another origin may ask */
    struct token_set *tokens; /* what exchange.access is of; NULL: of none */
    struct body body;
    char *target_heap; /* owned, or NULL */
    char target_small[REQUEST_TARGET_SMALL];
    char body_small[REQUEST_BODY_SMALL];
};

/* Begin anew in memory that is uninitialised or was ended.  False if memory is out. */
bool request_begin(
    struct request *request, struct request_context *context, struct slice target) MUST_CHECK;

enum request_verdict {
    REQUEST_GO_ON,      /* read the body, if any, then run */
    REQUEST_ANSWER_NOW, /* the response is filled; the body is not worth reading: answer and close
                         */
};

/* Judge the head: is it sound, which route, may the body come?  @head.target may be the library's.
 */
enum request_verdict request_head(struct request *request, const struct http_head *head) MUST_CHECK;

/* Refuse a head that cannot even be looked at: more than HTTP_FIELDS_MAX fields. */
void request_refuse_fields(struct request *request);

/* The next piece of the body. */
void request_upload(struct request *request, const char *p, size_t n);

/* The request is complete: call the handler.  HANDLER_REPLY: the response is filled.  HANDLER_WAIT:
 * the exchange's job is to be submitted with @deadline_ms, and request_finish() called when it is
 * done. */
enum handler_result request_run(
    struct request *request, int64_t now_ms, int64_t deadline_ms) MUST_CHECK;
void request_finish(struct request *request);

/* The response is filled, by whatever: add what belongs to every answer.  Once. */
void request_dress(struct request *request);

/* Free what the request holds, at whatever step it is. */
void request_end(struct request *request);

#endif

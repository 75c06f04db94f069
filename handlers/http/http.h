/* http.h - a request and its answer as plain values: the only seam between service/ and handlers/.
 *
 * Layer: handlers.
 *
 * The service reads a request from a connection into a struct http_exchange and calls the handler
 * of its route.  The handler fills the response, or a job for storage and, later, the response.
 * Handlers know no HTTP library, no Redis, no thread and no clock: the time comes with the request.
 *
 * Thread safety: an exchange belongs to one thread at a time.  In start() and finish() the thread
 * is the HTTP server's.  In between the job is storage's, and the exchange must not be touched.
 */
#ifndef HANDLERS_HTTP_HTTP_H
#define HANDLERS_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/storage.h"

enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_DELETE };

/* The header fields that handlers look at; others are checked and forgotten.
 *    name                          field, in lower case */
#define HTTP_KNOWN_FIELDS(X)                                                                       \
    X(FIELD_ACCEPT, "accept")                                                                      \
    X(FIELD_ACCEPT_LANGUAGE, "accept-language")                                                    \
    X(FIELD_AUTHORIZATION, "authorization")                                                        \
    X(FIELD_CONTENT_TYPE, "content-type")                                                          \
    X(FIELD_DNT, "dnt")                                                                            \
    X(FIELD_FORWARDED_URI, "x-forwarded-uri")                                                      \
    X(FIELD_IDEMPOTENCY_KEY, "idempotency-key")                                                    \
    X(FIELD_IF_NONE_MATCH, "if-none-match")                                                        \
    X(FIELD_ORIGIN, "origin")                                                                      \
    X(FIELD_ORIGINAL_URI, "x-original-uri")                                                        \
    X(FIELD_REFERER, "referer")                                                                    \
    X(FIELD_REQUEST_HEADERS, "access-control-request-headers")                                     \
    X(FIELD_REQUEST_METHOD, "access-control-request-method")                                       \
    X(FIELD_SEC_GPC, "sec-gpc")                                                                    \
    X(FIELD_SEC_PURPOSE, "sec-purpose")                                                            \
    X(FIELD_USER_AGENT, "user-agent")

enum http_field_name {
#define X(name, text) name,
    HTTP_KNOWN_FIELDS(X)
#undef X
        FIELD_COUNTRY, /* the field that --country-header names */
    HTTP_KNOWN_N
};

#define HTTP_FORWARDED_MAX 8 /* fields of X-Forwarded-For; proxies make one field of them */

/* What a handler may see of a request.  Slices live as long as the exchange. */
struct http_request {
    enum http_method method; /* HEAD arrives as HTTP_GET */
    bool head;               /* the method is HEAD: then a GET that counts must count nothing */
    struct slice path;       /* raw, up to '?' */
    struct slice query;      /* raw, behind '?'; empty if there is none */
    struct slice segment;    /* the part of the path in the route's {braces}: decoded, valid UTF-8
                                without NUL */
    struct slice peer;       /* address of the other end, as text without a port */
    const struct slice *fields; /* HTTP_KNOWN_N values; empty where absent, or present and empty */
    unsigned repeated; /* bits 1 << enum http_field_name: the fields that were given more than once.
                          `fields` has the first value of each */
    const struct slice *forwarded; /* the values of X-Forwarded-For in order, the last
                                      HTTP_FORWARDED_MAX of them */
    unsigned n_forwarded;
    struct slice body; /* decompressed, complete */
    char *body_bytes;  /* the same bytes, writable: a decoder may unescape in place */
    int64_t now_ms;    /* time of arrival, ms since 1970 in UTC: a lower bound of Redis's clock.
                            0: Redis was never seen */
};

/* Room for a handler's own header fields and for those that are added to all answers: three of the
 * guard, three of the pixel, four for other origins. */
#define HTTP_HEADERS_MAX 12

/* What a handler answers.  The body is one heap block (malloc), owned by the response, or static
 * text. */
struct http_response {
    unsigned status;
    const char *content_type; /* static */
    char *body;
    const char *static_body; /* in place of body; NULL: none */
    size_t body_n;
    struct http_header {
        const char *name; /* static */
        const char *text; /* static; NULL: see value */
        char value[112];
    } headers[HTTP_HEADERS_MAX];
    unsigned n_headers;
};

/* The bytes of the body, body_n of them; NULL if there are none. */
static inline const char *http_body_text(const struct http_response *response)
{
    return response->static_body != NULL ? response->static_body : response->body;
}

/* The value of a header field. */
static inline const char *http_header_text(const struct http_header *header)
{
    return header->text != NULL ? header->text : header->value;
}

struct app;    /* what all handlers share: see app.h */
struct access; /* the token that came with a request: see access/access.h */

struct http_exchange {
    const struct app *app;
    const struct access *access; /* NULL: no tokens are in use, or the route needs none */
    bool tokenless; /* tokens are in use, and none was shown.  Either the page that the request
                       comes from says which sites it may touch, or the body has the token */
    /* Judge the token that the body has.  Not NULL where tokenless.  False: the response is a 401
     * or 403. */
    bool (*show_token)(struct http_exchange *exchange, struct slice token);
    /* Give up the body, which is not needed any more: its memory may serve other requests while
     * this one waits for storage.  request.body is empty from then on. */
    void (*drop_body)(struct http_exchange *exchange);
    struct http_request request;
    struct http_response response;
    /* A handler fills the job and returns HANDLER_WAIT to have the job submitted.  It may give the
     * job less time than the request has.  What the job owns is freed with the exchange. */
    struct storage_job job;
    /* finish() sets this if it has filled the job once more.  The job is submitted then, and
     * finish() is called again when the job is done. */
    bool again;
    void *state; /* belongs to the handler */
    /* Frees state: called once, last.  NULL: there is nothing to free. */
    void (*release)(struct http_exchange *exchange);
};

enum handler_result {
    HANDLER_REPLY, /* the response is filled */
    HANDLER_WAIT,  /* the job is filled: submit it, and call finish() when it is done */
};

#define ROUTE_BODY 1u /* the endpoint takes a body */

/* The scope that a token must have.  Without one of these flags the scope is read for GET, and
 * admin for all other methods.  So every POST that needs less than admin has one. */
#define ROUTE_INGEST 2u
#define ROUTE_READ   4u
#define ROUTE_ADMIN  8u
#define ROUTE_OPEN   16u /* about the process: no token, unless --metrics-token asks for one */
#define ROUTE_PUBLIC 32u /* what a browser loads by itself: never a token */
/* A token that is needed must not be bound to sites: the answer is about all of them. */
#define ROUTE_ALL_SITES 2048u

#define ROUTE_BEACON  64u   /* browsers send page views here: see access/cors.h */
#define ROUTE_GIF     128u  /* every answer is an image: see ingest/pixel.h */
#define ROUTE_SLASH   256u  /* the path may end with a slash, too */
#define ROUTE_BASIC   1024u /* the token may be the user name of Basic, or stand in the body */
#define ROUTE_GUARDED 512u  /* page views come in here: see ingest/ingest_guard.h */

/* One endpoint. */
struct route {
    enum http_method method;
    const char *path;         /* exact, but for at most one segment in braces: "/users/{user}" */
    const char *operation_id; /* the operationId in openapi.yaml */
    enum handler_result (*start)(struct http_exchange *exchange);
    void (*finish)(struct http_exchange *exchange); /* after HANDLER_WAIT: job.err says how the job
                                                       ended.  NULL: start() never waits */
    unsigned flags;
};

#endif

/* http/interposed.c - two functions of the library's that this program puts its own in front of.
 *
 * The library (0.9.75) has no callback for either, but calls both through the dynamic linker.  The
 * linker finds the functions of this file first (symbol interposition, ld.so(8)).
 *
 *   MHD_queue_response             The library calls this function with an HTML page of its own for
 *                                  a request that it cannot parse.  The client gets a problem in
 *                                  place of the page, and the refusal is counted.
 *   MHD_lookup_connection_value_n  The library calls this function for the fields that it acts on.
 *                                  Two are hidden from it.  It would copy and split Cookie, which
 *                                  can take several times the memory of a connection, and nobody
 *                                  here looks at a cookie.  With Expect and no body it calls for
 *                                  the body's end too early, and takes no answer then.
 *
 * Our own calls go to library_queue().  A library that is linked statically would call neither of
 * these functions.  Then the pages would be the library's again, and test_http.py fails.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "handlers/reply/problem.h"
#include "service/http/server_private.h"

/* The library's own functions. */
static struct {
    enum MHD_Result (*queue)(struct MHD_Connection *, unsigned, struct MHD_Response *);
    enum MHD_Result (*lookup)(
        struct MHD_Connection *, enum MHD_ValueKind, const char *, size_t, const char **, size_t *);
} library;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_library(void)
{
    void *queue = dlsym(RTLD_NEXT, "MHD_queue_response");
    void *lookup = dlsym(RTLD_NEXT, "MHD_lookup_connection_value_n");
    memcpy(&library.queue, &queue, sizeof(queue));
    memcpy(&library.lookup, &lookup, sizeof(lookup));
}

bool library_bind(void)
{
    (void)pthread_once(&once, find_library);
    return library.queue != NULL && library.lookup != NULL;
}

enum MHD_Result library_queue(
    struct MHD_Connection *mhd, unsigned status, struct MHD_Response *response)
{
    return library.queue(mhd, status, response);
}

/* Must the library not see the field @key?  It asks for Cookie once it has read the head. */
static bool is_hidden(struct connection *connection, struct slice key)
{
    if (slice_equal(key, SLICE(MHD_HTTP_HEADER_COOKIE))) {
        connection->head_read = true;
        return true;
    }
    const struct http_message *message = &connection->request.message;
    return slice_equal(key, SLICE(MHD_HTTP_HEADER_EXPECT)) && connection->state == REQUEST_BODY &&
           !message->chunked && message->content_length == 0;
}

enum MHD_Result MHD_lookup_connection_value_n(struct MHD_Connection *mhd, enum MHD_ValueKind kind,
    const char *key, size_t key_size, const char **ret_value, size_t *ret_n)
{
    struct connection *connection = kind == MHD_HEADER_KIND ? connection_of(mhd) : NULL;
    if (connection != NULL && is_hidden(connection, (struct slice){key, key_size})) {
        return MHD_NO;
    }
    return library.lookup(mhd, kind, key, key_size, ret_value, ret_n);
}

/* What is wrong where the library refuses with another status than 400: the head, or the body. */
static const struct {
    unsigned status;
    enum problem problem;
    const char *of_head, *of_body;
} refusals[] = {
    {MHD_HTTP_CONTENT_TOO_LARGE, PROBLEM_TOO_LARGE, "Content-Length does not fit 64 bits",
        "the size of a chunk does not fit 64 bits"},
    {MHD_HTTP_URI_TOO_LONG, PROBLEM_TARGET_TOO_LONG, "the request line is too long", ""},
    {MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, PROBLEM_HEAD_TOO_LARGE, "the head is too large",
        "the trailers are too large"},
    {MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED, PROBLEM_VERSION, "the version is not HTTP/1.x", ""},
};

/* The reason for a refusal, by the library's status and by how far the request had come. */
static const char *refusal_of(
    unsigned status, const struct connection *connection, enum problem *ret_problem)
{
    bool body = connection->state == REQUEST_BODY;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (refusals[i].status == status) {
            *ret_problem = refusals[i].problem;
            return body ? refusals[i].of_body : refusals[i].of_head;
        }
    }
    *ret_problem = PROBLEM_MALFORMED; /* 400; a 500 of the library's is the client's doing, too */
    if (body) {
        return "the body is not framed in chunks as RFC 9112 has it, or a trailer has no colon";
    }
    if (connection->head_read) {
        return "Content-Length is not a number";
    }
    return connection->state == REQUEST_HEAD
               ? "a line of the head has no colon"
               : "the request line is not a method, a target and HTTP/1.x, with blanks between";
}

/* The X-Request-Id that the library has read so far; empty: none. */
static struct slice given_id(struct MHD_Connection *mhd)
{
    static const char name[] = "X-Request-Id";
    const char *value = NULL;
    size_t n = 0;
    (void)library.lookup(mhd, MHD_HEADER_KIND, name, sizeof(name) - 1, &value, &n);
    return value != NULL ? (struct slice){value, n} : (struct slice){0};
}

/* After a bad Content-Length the library (0.9.75) makes the head of its answer twice, and sends
 * both.  So the answer goes to the socket past the library, which is told to close. */
static enum MHD_Result answer_refusal(struct connection *connection)
{
    bool twice = connection->head_read && connection->state == REQUEST_HEAD;
    connection->linger = true;
    return twice ? connection_farewell(connection) : connection_reply(connection);
}

/* The library has nothing to answer but a request that it cannot parse. */
enum MHD_Result MHD_queue_response(
    struct MHD_Connection *mhd, unsigned status, struct MHD_Response *page)
{
    struct connection *connection = connection_of(mhd);
    (void)page;
    if (connection == NULL || connection->state == REQUEST_WAIT ||
        connection->state == REQUEST_MADE ||
        connection->state == REQUEST_REPLY) { /* no memory; or not reached: the request was whole */
        return MHD_NO;
    }
    bool begun = connection->state != REQUEST_DONE;
    enum problem problem;
    const char *detail = refusal_of(status, connection, &problem);
    if (!begun && !connection_begin(connection, SLICE(""))) {
        return MHD_NO;
    }
    if (connection->state != REQUEST_BODY) {
        connection_name(connection, begun ? given_id(mhd) : (struct slice){0});
    }
    request_refuse(&connection->request, problem, detail);
    enum MHD_Result result = answer_refusal(connection);
    if (!begun) { /* the library does not tell when such a request ends */
        connection_end(connection);
    }
    return result;
}

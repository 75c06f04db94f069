/* answer.c - the answer to a request: its headers, and how it is handed to libmicrohttpd. */
#include "service/http/server_private.h"

#include <string.h>

#include "storage/base/clock.h"

#define ID_HEADER "X-Request-Id"

/* ---- a response of the library's ---- */

static bool add_headers(struct connection *connection, struct MHD_Response *response)
{
    const struct http_response *from = &connection->request.exchange.response;
    bool ok = from->content_type == NULL ||
              MHD_add_response_header(response, "Content-Type", from->content_type) == MHD_YES;
    ok = ok && MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
         MHD_add_response_header(response, ID_HEADER, connection->id) == MHD_YES;
    for (unsigned i = 0; ok && i < from->n_headers; i++) {
        const struct http_header *header = &from->headers[i];
        ok = MHD_add_response_header(response, header->name, http_header_text(header)) == MHD_YES;
    }
    if (ok && atomic_load_explicit(&connection->server->quiesced, memory_order_relaxed)) {
        ok = MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    }
    return ok;
}

static struct MHD_Response *create(const struct http_response *from)
{
    if (from->static_body != NULL) { /* the library does not write to it */
        return MHD_create_response_from_buffer(
            from->body_n, (char *)(uintptr_t)from->static_body, MHD_RESPMEM_PERSISTENT);
    }
    return MHD_create_response_from_buffer(from->body_n, from->body, MHD_RESPMEM_MUST_FREE);
}

/* A new response; NULL: memory is out, or a handler made an unsound header. */
static struct MHD_Response *make_response(struct connection *connection)
{
    struct http_response *from = &connection->request.exchange.response;
    struct MHD_Response *response = create(from);
    if (response == NULL) {
        return NULL;
    }
    from->body = NULL; /* now the library's */
    if (!add_headers(connection, response)) {
        MHD_destroy_response(response);
        from->body_n = 0;
        return NULL;
    }
    return response;
}

/* ---- the same answer once more ---- */

/* A sender of single events gets the same answer each time, but for the id.  To make and free a
 * response takes the library 22 calls of the allocator; a new id in a kept response takes 6.  Small
 * answers without headers of their own are kept. */
#define KEPT_MAX 256

static bool may_be_kept(const struct connection *connection)
{
    const struct http_response *from = &connection->request.exchange.response;
    return from->body != NULL && from->body_n <= KEPT_MAX && from->n_headers == 0 &&
           !atomic_load_explicit(&connection->server->quiesced, memory_order_relaxed);
}

static bool is_kept(const struct connection *connection)
{
    const struct http_response *from = &connection->request.exchange.response;
    const struct kept_answer *kept = &connection->kept;
    return kept->response != NULL && kept->content_type == from->content_type &&
           kept->body_n == from->body_n && memcmp(kept->body, from->body, from->body_n) == 0;
}

static bool rename_kept(struct connection *connection)
{
    struct MHD_Response *response = connection->kept.response;
    const char *last = MHD_get_response_header(response, ID_HEADER);
    return last != NULL && MHD_del_response_header(response, ID_HEADER, last) == MHD_YES &&
           MHD_add_response_header(response, ID_HEADER, connection->id) == MHD_YES;
}

void connection_forget_answer(struct connection *connection)
{
    if (connection->kept.response != NULL) {
        MHD_destroy_response(connection->kept.response);
        connection->kept.response = NULL;
    }
}

/* The response that the connection keeps, with the request's id; NULL: memory is out. */
static struct MHD_Response *keep_response(struct connection *connection)
{
    struct http_response *from = &connection->request.exchange.response;
    /* The kept response was sent: the library takes one request after the other. */
    if (is_kept(connection) && rename_kept(connection)) {
        return connection->kept.response;
    }
    connection_forget_answer(connection);
    connection->kept = (struct kept_answer){
        .content_type = from->content_type, .body = from->body, .body_n = from->body_n};
    return connection->kept.response = make_response(connection);
}

/* ---- answers ---- */

/* The connection is closed without a response, too, if the reaper has ended it. */
enum MHD_Result connection_reply(struct connection *connection)
{
    request_dress(&connection->request);
    bool keeps = may_be_kept(connection);
    struct MHD_Response *response = keeps ? keep_response(connection) : make_response(connection);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_NO;
    int64_t due_ms = connection->due_ms + connection->server->config.idle_timeout_ms;
    if (reaper_answer(&connection->watch, monotonic_ms(), due_ms)) {
        result =
            library_queue(connection->mhd, connection->request.exchange.response.status, response);
    }
    if (!keeps) {
        MHD_destroy_response(response); /* the queue holds a reference of its own */
    }
    if (result == MHD_YES) {
        connection->worker->moved = true;
        connection_enter(connection, REQUEST_REPLY);
    }
    return result;
}

enum MHD_Result connection_farewell(struct connection *connection)
{
    request_dress(&connection->request);
    if (reaper_answer(
            &connection->watch, monotonic_ms(), REAPER_NEVER)) { /* else the reaper has answered */
        connection->linger = true;
        farewell_send(connection, &connection->request.exchange.response);
        connection_enter(connection, REQUEST_REPLY);
    }
    return MHD_NO;
}

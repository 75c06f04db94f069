/* http/farewell.c - answers to requests that do not come whole.
 *
 * While no bytes come, the library calls no function.  So the reaper writes the 408 of a late
 * request to the socket itself, right before it shuts the socket down.  reaper.h says why nothing
 * else is sent on the socket then.
 *
 * While a body comes, the library (0.9.75) takes no answer.  So the 413 of a body without end is
 * written to the socket by the connection's own thread, which ends the connection then.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "handlers/reply/problem.h"
#include "service/http/server_private.h"

/* So many bytes hold a problem and all fields that an answer may have. */
#define ANSWER_MAX 4096

/* Print the present time as RFC 9110 section 5.6.7 has it. */
static void print_date(char ret[static 32])
{
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm) == NULL || strftime(ret, 32, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0) {
        (void)snprintf(ret, 32, "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}

/* Print the id of the request, or a new one.  The connection belongs to its HTTP thread.  So the
 * reaper's thread reads only what stays the same, and the id once the connection is `named`. */
static void print_id(struct connection *connection, char ret[static HTTP_ID_MAX + 1])
{
    if (atomic_load_explicit(&connection->named, memory_order_acquire)) {
        (void)snprintf(ret, HTTP_ID_MAX + 1, "%s", connection->id);
    } else {
        request_ids_next(&connection->server->ids, ret);
    }
}

/* Append to @ret, of @room bytes, at @n.  Returns the new end; from @room on the text is cut. */
__attribute__((format(printf, 4, 5))) static size_t append(
    char *ret, size_t room, size_t n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int more = n < room ? vsnprintf(ret + n, room - n, format, args) : 0;
    va_end(args);
    return more < 0 ? room : n + (size_t)more;
}

/* Print status line, fields and body.  Returns the length; 0: they do not fit. */
static size_t print_answer(
    struct connection *connection, const struct http_response *response, char *ret, size_t room)
{
    char id[HTTP_ID_MAX + 1];
    char date[32];
    const char *phrase = problem_phrase(response->status);
    print_date(date);
    print_id(connection, id);
    size_t n = append(ret, room, 0,
        "HTTP/1.1 %u %s\r\nDate: %s\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n"
        "X-Request-Id: %s\r\nContent-Length: %zu\r\n",
        response->status, phrase != NULL ? phrase : "", date, id, response->body_n);
    if (response->content_type != NULL) {
        n = append(ret, room, n, "Content-Type: %s\r\n", response->content_type);
    }
    for (unsigned i = 0; i < response->n_headers; i++) {
        const struct http_header *header = &response->headers[i];
        n = append(ret, room, n, "%s: %s\r\n", header->name, http_header_text(header));
    }
    n = append(ret, room, n, "\r\n");
    if (n >= room || response->body_n > room - n) {
        return 0;
    }
    if (response->body_n > 0) {
        memcpy(ret + n, http_body_text(response), response->body_n);
    }
    return n + response->body_n;
}

void farewell_send(struct connection *connection, const struct http_response *response)
{
    char text[ANSWER_MAX];
    size_t n = print_answer(connection, response, text, sizeof(text));
    if (n > 0) {
        (void)send(connection->watch.fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void http_farewell(const struct reaper_entry *watch, bool for_room)
{
    struct connection *connection =
        (struct connection *)((uintptr_t)watch - offsetof(struct connection, watch));
    struct http_response problem = {.body = NULL};
    if (for_room) {
        problem_reply(&problem, PROBLEM_SLOW,
            "the request came slowly, and all connections were taken (--max-connections, or the "
            "limit of open files): send it again");
    } else {
        problem_reply(&problem, PROBLEM_SLOW, "the request did not come whole within %g s",
            (double)connection->server->config.request_timeout_ms / 1000);
    }
    farewell_send(connection, &problem);
    free(problem.body);
}

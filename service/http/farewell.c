/* http/farewell.c - the answer to a request that does not come whole in time.
 *
 * While no bytes come, the library calls no function.  So the reaper writes this answer to the
 * socket itself, right before it shuts the socket down.  reaper.h says why nothing else is sent on
 * the socket then.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "handlers/reply/problem.h"
#include "service/http/server_private.h"

#define HEAD_MAX 512 /* with the longest id */

/* RFC 9110 section 5.6.7. */
static void print_date(char ret[static 32])
{
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm) == NULL || strftime(ret, 32, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0) {
        (void)snprintf(ret, 32, "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}

/* The connection belongs to its HTTP thread.  So this thread reads only what stays the same, and
 * the id once the connection is `named`. */
static void print_id(struct connection *connection, char ret[static HTTP_ID_MAX + 1])
{
    if (atomic_load_explicit(&connection->named, memory_order_acquire)) {
        (void)snprintf(ret, HTTP_ID_MAX + 1, "%s", connection->id);
    } else {
        request_ids_next(&connection->server->ids, ret);
    }
}

void http_farewell(const struct reaper_entry *watch)
{
    struct connection *connection =
        (struct connection *)((uintptr_t)watch - offsetof(struct connection, watch));
    struct http_response problem = {.body = NULL};
    char id[HTTP_ID_MAX + 1];
    char date[32];
    char text[HEAD_MAX + 2 * PROBLEM_DETAIL_MAX];
    problem_reply(&problem, PROBLEM_SLOW, "the request did not come whole within %g s",
        (double)connection->server->config.request_timeout_ms / 1000);
    print_date(date);
    print_id(connection, id);
    int n = snprintf(text, sizeof(text),
        "HTTP/1.1 %u Request Timeout\r\nDate: %s\r\nConnection: close\r\nContent-Type: %s\r\n"
        "X-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\nContent-Length: %zu\r\n\r\n%.*s",
        problem.status, date, problem.content_type, id, problem.body_n, (int)problem.body_n,
        problem.body_n > 0 ? problem.body : "");
    if (n > 0 && (size_t)n < sizeof(text)) {
        (void)send(watch->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    free(problem.body);
}

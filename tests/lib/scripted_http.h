/* scripted_http.h - an HTTP server that gives answers by heart, for tests of clients.
 *
 * It serves one connection at a time, on a loopback port of its own.  Each request gets the next
 * answer of the script, byte for byte.  It does not judge what it is asked: the test does that.
 */
#ifndef TESTS_LIB_SCRIPTED_HTTP_H
#define TESTS_LIB_SCRIPTED_HTTP_H

#include <stddef.h>

/* The connection is closed in place of an answer. */
#define SCRIPTED_CLOSE ""
/* No answer comes, and the connection stays open until the client ends it. */
#define SCRIPTED_SILENCE "silence"

struct scripted_request {
    char head[2048]; /* request line and headers */
    char body[4096]; /* cut off where it is longer */
    size_t body_n;
};

/* Answers without a body, and with @body as JSON; the caller frees them. */
char *scripted_answer(int status, const char *headers, const char *body);

/* Serve @n_answers answers from now on; they are borrowed.  Requests behind them find a closed
 * connection.  No request may be under way. */
void scripted_http_start(const char *const *answers, size_t n_answers);
const char *scripted_http_url(void);

/* How many requests came, and the one with number @i. */
size_t scripted_http_requests(void);
const struct scripted_request *scripted_http_request(size_t i);

#endif

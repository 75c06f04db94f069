/* toy_server.h - the real HTTP server with toy routes and a storage that is a thread and a list,
 * and a client that speaks raw bytes.
 *
 * Routes: GET /now (200 "now"), GET /wait (a job, then 200 "waited"), POST /echo (the body comes
 * back), POST /wait (a job, then the body), GET /query (path, blank, query), GET /big (4 MiB), GET
 * /empty (204), DELETE /now (200). Client functions fail the test when nothing comes for five
 * seconds.
 */
#ifndef TESTS_LIB_TOY_SERVER_H
#define TESTS_LIB_TOY_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/http/server.h"

enum toy_mode {
    TOY_THREAD, /* jobs are done by another thread, as soon as it can once they are flushed */
    TOY_INLINE, /* jobs are done within submit */
    TOY_HOLD,   /* jobs wait for toy_let_go(), or their deadline: STORAGE_LATE */
};

struct toy;

/* Zero fields of @config get defaults: one thread, 64 connections, 100,000 bytes of body and as
 * much for all, 5 s a request, 5 s idle. */
struct toy *toy_start(struct http_server_config config, enum toy_mode mode);
struct http_server *toy_server(struct toy *toy);
void toy_let_go(struct toy *toy);
void toy_await_lent(struct toy *toy, int64_t n); /* until n requests wait for storage */
void toy_await_connections(struct toy *toy, int64_t n);
void toy_await_observed(struct toy *toy, unsigned n);
struct http_server_stats toy_stats(struct toy *toy);

/* Answers seen by the observer: how many, and the last one's route and status. */
void toy_observed(struct toy *toy, unsigned *ret_n, size_t *ret_route, unsigned *ret_status);
size_t toy_n_routes(void);

/* Stop the server and free. */
void toy_stop(struct toy *toy);
void toy_stop_within(struct toy *toy, int64_t grace_ms);

int toy_connect(const struct toy *toy);
bool toy_can_connect(const struct toy *toy);
void toy_send(int fd, const char *text);
void toy_send_n(int fd, const char *p, size_t n);

struct answer {
    int status;
    size_t n;         /* bytes of body */
    char head[2048];  /* with the status line, NUL-terminated */
    char body[65536]; /* NUL-terminated; cut off, n is not */
};

/* Read one answer and no byte more.  False at the end of the stream. */
bool toy_answer(int fd, struct answer *ret);
bool toy_answer_to_head(int fd, struct answer *ret);
/* The value of a header in @ret, "" if it is missing. */
bool answer_header(const struct answer *answer, const char *name, char *ret, size_t ret_n);

/* True if there is something to read, or the end, within @ms. */
bool toy_readable(int fd, int ms);

/* True if the peer ends the stream, with FIN or RST, within @ms; false if it is still open then. */
bool toy_ended(int fd, int ms);

int64_t toy_now_ms(void);

#endif

/* log_bench.h - a logger whose clock the test sets, and whose lines come out of a pipe.
 *
 * Not thread-safe, but for the logger.  A fault fails the test.
 */
#ifndef TESTS_LIB_LOG_BENCH_H
#define TESTS_LIB_LOG_BENCH_H

#include <jansson.h>

#include "service/log/log.h"

#define T0 INT64_C(1767225600123) /* 2026-01-01T00:00:00.123Z */

struct bench {
    struct logger *logger;
    int64_t now_ms; /* the logger's clock, UTC */
    int out, in;    /* the pipe's ends: what is written to `in` is read from `out` */
    char text[65536];
};

/* Make the logger, at T0.  @repeats_per_s: see struct logger_config. */
void bench_open(struct bench *bench, enum log_syntax syntax, unsigned repeats_per_s);
void bench_close(struct bench *bench);

/* What was written since the last call; it stays until the next one. */
const char *bench_read(struct bench *bench);

/* The one JSON line that was written; the caller's reference. */
json_t *bench_json(struct bench *bench);

/* How many lines @text has. */
unsigned count_lines(const char *text);

#endif

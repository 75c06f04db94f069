#include "tests/lib/log_bench.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int64_t bench_now(void *clock)
{
    return ((struct bench *)clock)->now_ms;
}

void bench_open(struct bench *bench, enum log_syntax syntax, unsigned repeats_per_s)
{
    int fds[2];

    memset(bench, 0, sizeof(*bench));
    cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    bench->out = fds[0];
    bench->in = fds[1];
    bench->now_ms = T0;
    bench->logger = logger_new(&(struct logger_config){.fd = bench->in,
        .syntax = syntax,
        .level = LOG_LEVEL_INFO,
        .repeats_per_s = repeats_per_s,
        .now_ms = bench_now,
        .clock = bench});
    cr_assert(bench->logger != NULL);
}

const char *bench_read(struct bench *bench)
{
    ssize_t n = read(bench->out, bench->text, sizeof(bench->text) - 1);

    bench->text[n > 0 ? n : 0] = '\0';
    return bench->text;
}

void bench_close(struct bench *bench)
{
    logger_free(bench->logger);
    cr_assert_eq(close(bench->in), 0);
    cr_assert_eq(close(bench->out), 0);
}

json_t *bench_json(struct bench *bench)
{
    const char *line = bench_read(bench);
    json_error_t error;
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, &error);

    cr_assert(json != NULL, "%s: %s", error.text, line);
    cr_assert(strchr(line, '\n') == line + strlen(line) - 1, "one line");
    return json;
}

unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

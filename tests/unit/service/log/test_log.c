#include "service/log/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/log_bench.h"

TestSuite(log, .timeout = 60);

/* ---- what works ---- */

Test(log, logfmt)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 0);
    log_info(bench.logger, "up");
    cr_expect_str_eq(bench_read(&bench), "ts=2026-01-01T00:00:00.123Z level=info msg=up\n");
    log_warn(bench.logger, "two words", log_text("bare", "a/b:c,d"), log_text("empty", ""),
        log_text("none", NULL), log_text("quoted", "a \"b\"=\\"), log_int("i", INT64_MIN),
        log_uint("u", UINT64_MAX), log_bool("yes", true), log_slice("s", (struct slice){"xyz", 2}));
    cr_expect_str_eq(bench_read(&bench), "ts=2026-01-01T00:00:00.123Z level=warn msg=\"two words\" "
                                         "bare=a/b:c,d empty=\"\" none=\"\" "
                                         "quoted=\"a \\\"b\\\"=\\\\\" i=-9223372036854775808 "
                                         "u=18446744073709551615 yes=true s=xy\n");
    bench_close(&bench);
}

Test(log, json)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_JSON, 0);
    log_error(bench.logger, "it \"broke\"", log_text("why", "a\tb"), log_int("n", -3),
        log_bool("again", false));
    json_t *json = bench_json(&bench);

    cr_expect_str_eq(json_string_value(json_object_get(json, "ts")), "2026-01-01T00:00:00.123Z");
    cr_expect_str_eq(json_string_value(json_object_get(json, "level")), "error");
    cr_expect_str_eq(json_string_value(json_object_get(json, "msg")), "it \"broke\"");
    cr_expect_str_eq(json_string_value(json_object_get(json, "why")), "a\tb");
    cr_expect_eq(json_integer_value(json_object_get(json, "n")), -3);
    cr_expect(json_is_false(json_object_get(json, "again")));
    json_decref(json);
    bench_close(&bench);
}

Test(log, times_before_1970)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 0);
    bench.now_ms = -1;
    log_info(bench.logger, "x");
    cr_expect_str_eq(bench_read(&bench), "ts=1969-12-31T23:59:59.999Z level=info msg=x\n");
    bench_close(&bench);
}

Test(log, level_can_be_changed)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 0);
    log_debug(bench.logger, "x");
    cr_expect_str_eq(bench_read(&bench), "");
    logger_set_level(bench.logger, LOG_LEVEL_DEBUG);
    log_debug(bench.logger, "x");
    cr_expect_neq(bench_read(&bench)[0], '\0');
    logger_set_level(bench.logger, LOG_LEVEL_ERROR);
    log_warn(bench.logger, "x");
    cr_expect_str_eq(bench_read(&bench), "");
    log_error(bench.logger, "x");
    cr_expect_neq(bench_read(&bench)[0], '\0');
    bench_close(&bench);
}

/* What is logged on the way to an answer changes nothing of the answer. */
Test(log, errno_stays)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 0);
    cr_assert_eq(close(bench.in), 0);
    errno = ENOTTY;
    log_warn(bench.logger, "nobody gets this");
    cr_expect_eq(errno, ENOTTY);
    cr_expect_eq(logger_lost(bench.logger), 1u);
    logger_free(bench.logger);
    cr_assert_eq(close(bench.out), 0);
}

#define THREADS 4
#define RECORDS 100

static void *log_many(void *logger)
{
    char value[200];

    memset(value, 'v', sizeof(value));
    for (int i = 0; i < RECORDS; i++) {
        log_info((struct logger *)logger, "many",
            log_slice("value", (struct slice){value, sizeof(value)}));
    }
    return NULL;
}

Test(log, lines_of_threads_do_not_mix)
{
    struct bench bench;
    pthread_t threads[THREADS];
    char path[] = "/tmp/tallyd-log-XXXXXX", line[512];
    int fd = mkstemp(path);
    unsigned n = 0;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 0);
    struct logger *logger = logger_new(&(struct logger_config){
        .fd = fd, .level = LOG_LEVEL_INFO, .repeats_per_s = THREADS * RECORDS});

    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, log_many, logger), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    }
    logger_free(logger);

    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    FILE *file = fdopen(fd, "r");

    while (fgets(line, sizeof(line), file) != NULL) {
        cr_assert(
            strncmp(line, "ts=", 3) == 0 && strlen(line) > 240 && strlen(line) < 270, "%s", line);
        n++;
    }
    cr_expect_eq(n, THREADS * RECORDS);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(unlink(path), 0);
    bench_close(&bench);
}

/* ---- hostile and oversized ---- */

Test(log, controls_and_broken_utf8_are_escaped)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a\nb\r\t", "a\\nb\\r\\t"},
        {"\x1b[0m\x7f\x01", "\\u001b[0m\\u007f\\u0001"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc2\x9b", "\\u009b"},                                       /* C1: CSI */
        {"\xe2\x80\xae\xd8\x9c\xe2\x81\xa6", "\\u202e\\u061c\\u2066"}, /* directions */
        {"\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa9\xe2\x81\xa5\xe2\x81\xaa",
            "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa9\xe2\x81\xa5\xe2\x81\xaa"},
        {"\xff\x80", "\\ufffd\\ufffd"},                       /* no start */
        {"\xc3", "\\ufffd"},                                  /* cut */
        {"\xc0\xaf", "\\ufffd\\ufffd"},                       /* overlong */
        {"\xe0\x80\x80", "\\ufffd\\ufffd\\ufffd"},            /* overlong */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},            /* surrogate */
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* above U+10FFFF */
        {"\xf0\x9f\x98x", "\\ufffd\\ufffd\\ufffdx"},
    };
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[256];

        log_info(bench.logger, "m", log_text("k", cases[i].in));
        (void)snprintf(expected, sizeof(expected),
            "ts=2026-01-01T00:00:00.123Z level=info msg=m k=\"%s\"\n", cases[i].out);
        cr_expect_str_eq(bench_read(&bench), expected);
    }
    log_info(bench.logger, "m", log_slice("k", (struct slice){"a\0b", 3}));
    cr_expect(strstr(bench_read(&bench), "k=\"a\\u0000b\"\n") != NULL);
    bench_close(&bench);
}

Test(log, every_byte_gives_json)
{
    struct bench bench;
    char all[256];

    for (int i = 0; i < 256; i++) {
        all[i] = (char)i;
    }
    bench_open(&bench, LOG_SYNTAX_JSON, 0);
    log_info(bench.logger, "m", log_slice("k", (struct slice){all + 1, 255}));
    json_decref(bench_json(&bench));
    bench_close(&bench);
}

Test(log, long_values_are_cut_and_lines_stay_whole)
{
    struct bench bench;
    char value[9000];

    memset(value, 'v', sizeof(value));
    struct slice huge = {value, sizeof(value)};

    bench_open(&bench, LOG_SYNTAX_JSON, 0);
    log_info(bench.logger, "m", log_slice("a", huge), log_int("b", 1));
    json_t *json = bench_json(&bench);
    const char *a = json_string_value(json_object_get(json, "a"));

    cr_expect_eq(strlen(a), LOG_VALUE_MAX + 3);
    cr_expect_str_eq(a + LOG_VALUE_MAX, "...");
    cr_expect_eq(json_integer_value(json_object_get(json, "b")), 1);
    json_decref(json);

    log_info(bench.logger, "m", log_slice("a", huge), log_slice("b", huge), log_slice("c", huge),
        log_slice("d", huge), log_slice("e", huge));
    cr_expect(strlen(bench_read(&bench)) <= LOG_RECORD_MAX);
    json = json_loads(bench.text, 0, NULL);
    cr_assert(json != NULL, "%s", bench.text);
    cr_expect(json_object_get(json, "c") != NULL && json_object_get(json, "d") == NULL);
    cr_expect(json_is_true(json_object_get(json, "truncated")));
    json_decref(json);
    bench_close(&bench);
}

/* The fourth field fills the line to every length, the fifth then fits or not. */
Test(log, no_length_breaks_a_line)
{
    static char value[LOG_VALUE_MAX];
    struct bench bench;
    unsigned truncated = 0;

    memset(value, 'v', sizeof(value));
    struct slice large = {value, sizeof(value)}, small = {value, 40};

    bench_open(&bench, LOG_SYNTAX_JSON, 0);
    for (size_t n = 0; n < LOG_VALUE_MAX; n++) {
        log_info(bench.logger, "m", log_slice("a", large), log_slice("b", large),
            log_slice("c", large), log_slice("d", (struct slice){value, n}), log_slice("e", small));
        json_t *json = bench_json(&bench);
        bool whole = json_object_get(json, "e") != NULL;

        cr_expect(strlen(bench.text) <= LOG_RECORD_MAX);
        cr_expect_neq(whole, json_is_true(json_object_get(json, "truncated")), "%zu", n);
        truncated += !whole;
        json_decref(json);
    }
    cr_expect(truncated > 0 && truncated < LOG_VALUE_MAX);
    bench_close(&bench);
}

Test(log, a_full_pipe_loses_records_and_counts_them)
{
    struct bench bench;
    char value[1000];

    memset(value, 'v', sizeof(value));
    bench_open(&bench, LOG_SYNTAX_LOGFMT, 0);
    errno = ENOTTY;
    for (int i = 0; i < 1000; i++) {
        log_info(bench.logger, "m", log_slice("v", (struct slice){value, sizeof(value)}));
    }
    cr_expect_eq(errno, ENOTTY);
    cr_expect(logger_lost(bench.logger) > 0);
    bench_close(&bench);
}

/* With a descriptor that blocks, as stderr is: the reader of a pipe may stop. */
Test(log, a_pipe_that_nobody_reads_holds_nobody_up)
{
    int fds[2];
    char value[900], text[65536];
    memset(value, 'v', sizeof(value));
    cr_assert(pipe(fds) == 0 && fcntl(fds[1], F_SETPIPE_SZ, 16384) > 0);
    struct logger *logger = logger_new(&(struct logger_config){.fd = fds[1]});
    cr_assert_not_null(logger);
    for (unsigned i = 0; i < 100; i++) {
        log_error(logger, "m", log_slice("v", (struct slice){value, sizeof(value)}));
    }
    uint64_t lost = logger_lost(logger);
    cr_expect(lost > 50 && lost < 100, "%lu", (unsigned long)lost);
    cr_assert(read(fds[0], text, sizeof(text)) > 0);
    log_error(logger, "m");
    cr_expect_eq(logger_lost(logger), lost, "there is room again");
    logger_free(logger);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

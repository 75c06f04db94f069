/* How often the same message is written, and what is said of the rest. */
#include "service/log/log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/log_bench.h"

TestSuite(log_repeats, .timeout = 60);

Test(log_repeats, repeats_are_limited_and_counted)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 3);
    for (int i = 0; i < 10; i++) {
        log_warn(bench.logger, "again", log_int("i", i));
    }
    log_warn(bench.logger, "another");
    const char *text = bench_read(&bench);

    cr_expect_eq(count_lines(text), 4, "%s", text);
    cr_expect(strstr(text, "i=2\n") != NULL && strstr(text, "i=3\n") == NULL);
    cr_expect(strstr(text, "msg=another\n") != NULL, "other messages have a limit of their own");

    bench.now_ms += 1000;
    log_warn(bench.logger, "again", log_int("i", 10));
    log_warn(bench.logger, "again", log_int("i", 11));
    text = bench_read(&bench);
    cr_expect(strstr(text, "msg=again suppressed=7 i=10\n") != NULL, "%s", text);
    cr_expect(strstr(text, "msg=again i=11\n") != NULL, "%s", text);
    bench_close(&bench);
}

Test(log_repeats, a_clock_set_back_blocks_nothing)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 1);
    log_warn(bench.logger, "again");
    bench.now_ms -= 3600 * 1000;
    (void)bench_read(&bench);
    log_warn(bench.logger, "again");
    cr_expect_eq(count_lines(bench_read(&bench)), 1);
    bench_close(&bench);
}

Test(log_repeats, what_was_suppressed_is_said_at_the_end)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 1);
    log_warn(bench.logger, "again");
    log_warn(bench.logger, "again");
    log_warn(bench.logger, "again");
    (void)bench_read(&bench);
    logger_free(bench.logger);
    bench.logger = NULL;
    cr_expect_str_eq(
        bench_read(&bench), "ts=2026-01-01T00:00:00.123Z level=warn msg=again suppressed=2\n");
    bench_close(&bench);
}

/* Each second has a limit, also behind one in which records were left out. */
Test(log_repeats, the_limit_holds_in_every_second)
{
    struct bench bench;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 1);
    for (int second = 0; second < 3; second++) {
        log_warn(bench.logger, "again");
        log_warn(bench.logger, "again");
        cr_expect_eq(count_lines(bench_read(&bench)), 1, "second %d", second);
        bench.now_ms += 1000;
    }
    bench_close(&bench);
}

/* There are more messages than places, so some push others out. */
Test(log_repeats, what_was_suppressed_of_a_message_that_made_room_is_said)
{
    enum { MESSAGES = 100 };
    static char messages[MESSAGES][8];
    struct bench bench;
    size_t told = 0;

    bench_open(&bench, LOG_SYNTAX_LOGFMT, 1);
    for (int i = 0; i < MESSAGES; i++) {
        (void)snprintf(messages[i], sizeof(messages[i]), "m%d", i);
        log_write(bench.logger, LOG_LEVEL_WARN, messages[i], NULL, 0);
        log_write(bench.logger, LOG_LEVEL_WARN, messages[i], NULL, 0);
    }
    logger_free(bench.logger);
    bench.logger = NULL;
    for (const char *at = bench_read(&bench); (at = strstr(at, " suppressed=1\n")) != NULL; at++) {
        told++;
    }
    cr_expect_eq(told, (size_t)MESSAGES);
    bench_close(&bench);
}

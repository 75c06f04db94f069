#include "service/redis/redis_news.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "storage/job/error.h"

TestSuite(redis_news, .timeout = 60);

/* News whose records come out of a pipe. */
struct bench {
    struct redis_news news;
    int out, in;
    char text[65536];
};

static struct bench *bench_open(void)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    int fds[2];
    cr_assert(bench != NULL && pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    bench->out = fds[0];
    bench->in = fds[1];
    redis_news_init(&bench->news);
    bench->news.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bench->news.logger =
        logger_new(&(struct logger_config){.fd = bench->in, .level = LOG_LEVEL_INFO});
    cr_assert(bench->news.fd >= 0 && bench->news.logger != NULL);
    return bench;
}

static void bench_close(struct bench *bench)
{
    logger_free(bench->news.logger);
    cr_assert_eq(close(bench->in), 0);
    cr_assert_eq(close(bench->out), 0);
    cr_assert_eq(close(bench->news.fd), 0);
    free(bench);
}

/* How many records were written, each of which has @part. */
static unsigned written(struct bench *bench, const char *part)
{
    unsigned n = 0;
    ssize_t length = read(bench->out, bench->text, sizeof(bench->text) - 1);
    bench->text[length > 0 ? length : 0] = '\0';
    for (char *line = strtok(bench->text, "\n"); line != NULL; line = strtok(NULL, "\n"), n++) {
        cr_expect(strstr(line, part) != NULL, "%s", line);
    }
    return n;
}

/* How many records a notice writes, each of which has @part. */
static unsigned told(
    struct bench *bench, enum storage_notice what, const char *detail, const char *part)
{
    redis_news_storage(&bench->news, what, detail);
    return written(bench, part);
}

/* Everything that was told was told a minute ago. */
static void pass_a_minute(struct bench *bench)
{
    for (size_t i = 0; i < REDIS_NEWS_TOLD; i++) {
        bench->news.told[i].at_ms -= 60000;
    }
}

Test(redis_news, what_repeats_is_told_once_a_minute)
{
    static const enum storage_notice repeated[] = {
        STORAGE_CONNECT_FAILED, STORAGE_LINK_FAILED, STORAGE_SETTINGS_DIFFER, STORAGE_REFUSING};
    for (size_t i = 0; i < sizeof(repeated) / sizeof(repeated[0]); i++) {
        struct bench *bench = bench_open();
        cr_expect_eq(told(bench, repeated[i], "no such file", "no such file"), 1);
        cr_expect_eq(told(bench, repeated[i], "no such file", ""), 0);
        cr_expect_eq(told(bench, repeated[i], "refused", "refused"), 1);
        cr_expect_eq(told(bench, repeated[i], "no such file", ""), 0, "two reasons in turn");
        pass_a_minute(bench);
        cr_expect_eq(told(bench, repeated[i], "no such file", "no such file"), 1);
        cr_expect_eq(told(bench, repeated[i], "no such file", ""), 0);
        bench_close(bench);
    }
}

Test(redis_news, what_cannot_be_used_is_named)
{
    struct bench *bench = bench_open();
    (void)snprintf(bench->news.server, sizeof(bench->news.server), "redis://:***@redis.example");
    cr_expect_eq(
        told(bench, STORAGE_CONNECT_FAILED, "refused", "server=redis://:***@redis.example"), 1);
    bench_close(bench);
}

/* While the disk of the own Redis is full, the answers that Redis is away say so. */
Test(redis_news, a_full_disk_is_named_until_redis_starts)
{
    struct bench *bench = bench_open();
    struct redis_child_report report = {
        .outcome = REDIS_CHILD_EXITED, .text = "exit 1", .disk_full = true};
    redis_news_child(&bench->news, &report);
    cr_expect_not_null(strstr(storage_err_text(STORAGE_DOWN), "its disk is full"));
    report = (struct redis_child_report){.outcome = REDIS_CHILD_NOTHING};
    redis_news_child(&bench->news, &report);
    cr_expect_not_null(strstr(storage_err_text(STORAGE_DOWN), "its disk is full"), "no news");
    report.outcome = REDIS_CHILD_STARTED;
    redis_news_child(&bench->news, &report);
    cr_expect_null(strstr(storage_err_text(STORAGE_DOWN), "disk"));
    bench_close(bench);
}

Test(redis_news, notices_with_one_reason_are_told_apart)
{
    struct bench *bench = bench_open();
    cr_expect_eq(told(bench, STORAGE_CONNECT_FAILED, "refused", "cannot use Redis"), 1);
    cr_expect_eq(told(bench, STORAGE_LINK_FAILED, "refused", "another connection"), 1);
    bench_close(bench);
}

Test(redis_news, of_many_reasons_the_newest_are_known)
{
    struct bench *bench = bench_open();
    char reason[] = "reason A";
    for (unsigned i = 0; i < REDIS_NEWS_TOLD + 1; i++, reason[7]++) {
        cr_expect_eq(told(bench, STORAGE_REFUSING, reason, reason), 1);
        bench->news.told[i % REDIS_NEWS_TOLD].at_ms += i; /* one after the other */
    }
    reason[7]--;
    cr_expect_eq(told(bench, STORAGE_REFUSING, reason, ""), 0);
    cr_expect_eq(told(bench, STORAGE_REFUSING, "reason B", ""), 0);
    cr_expect_eq(told(bench, STORAGE_REFUSING, "reason A", "reason A"), 1, "it was the oldest");
    bench_close(bench);
}

Test(redis_news, what_is_over_is_news_when_it_comes_again)
{
    struct bench *bench = bench_open();
    cr_expect_eq(told(bench, STORAGE_REFUSING, "MISCONF", "MISCONF"), 1);
    cr_expect_eq(told(bench, STORAGE_TAKES_WRITES, "", "Redis takes writes again"), 1);
    cr_expect_eq(told(bench, STORAGE_REFUSING, "MISCONF", "MISCONF"), 1);
    cr_expect_eq(told(bench, STORAGE_CONNECTED, "", "connected to Redis"), 1);
    cr_expect_eq(told(bench, STORAGE_REFUSING, "MISCONF", "MISCONF"), 1);
    bench_close(bench);
}

/* Clocks that agree but for some seconds agree: a difference is told from there on. */
Test(redis_news, clocks_that_differ_again_are_told_again)
{
    struct bench *bench = bench_open();
    static const struct {
        int64_t ahead_ms;
        const char *told; /* NULL: nothing */
    } steps[] = {
        {4999, NULL},
        {5000, "clock differs"},
        {10000, "clock differs"},
        {12000, NULL},
        {4900, "agree again"},
        {5500, "clock differs"},
        {-4900, "agree again"},
        {-5500, "clock differs"},
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const char *part = steps[i].told != NULL ? steps[i].told : "";
        redis_news_clocks(&bench->news, 1000000 + steps[i].ahead_ms, 1000000);
        cr_expect_eq(written(bench, part), steps[i].told != NULL ? 1 : 0, "step %zu", i);
    }
    redis_news_clocks(&bench->news, 0, 1000000);
    cr_expect_eq(written(bench, ""), 0, "Redis's clock is not known");
    bench_close(bench);
}

/* What a kill leaves at the end of an append-only file is told from damage in its middle. */
#include "service/redis/aof_scan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(aof_scan, .timeout = 60);

#define SELECT      "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
#define REMARK      "#TS:1795837694\r\n"
#define SET         "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$12\r\n\r\n*1\r\n$4\r\nxy\r\n"
#define TRANSACTION "*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$0\r\n\r\n*1\r\n$4\r\nexec\r\n"
#define ANOTHER     "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n"

static const char commands[] = SELECT REMARK SET TRANSACTION ANOTHER;
#define COMMANDS_N (sizeof(commands) - 1)

/* Do @n bytes of the commands end where one of them does, and no transaction is open? */
static bool is_whole(size_t n)
{
    static const size_t ends[] = {0, sizeof(SELECT) - 1, sizeof(SELECT REMARK) - 1,
        sizeof(SELECT REMARK SET) - 1, sizeof(SELECT REMARK SET TRANSACTION) - 1, COMMANDS_N};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (n == ends[i]) {
            return true;
        }
    }
    return false;
}

/* aof_scan() of a file with @n bytes of @text and @zeros behind them. */
static enum aof_state scan(const char *text, size_t n, size_t zeros, int64_t *ret_at)
{
    char path[] = "/tmp/tallyd-aof-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    cr_assert(zeros == 0 || ftruncate(fd, (off_t)(n + zeros)) == 0);
    (void)close(fd);
    enum aof_state state = aof_scan(path, ret_at);
    (void)unlink(path);
    return state;
}

Test(aof_scan, an_end_may_be_missing_anywhere)
{
    int64_t at;
    for (size_t n = 0; n <= COMMANDS_N; n++) {
        enum aof_state wanted = is_whole(n) ? AOF_WHOLE : AOF_UNFINISHED;
        cr_expect_eq(scan(commands, n, 0, &at), wanted, "%zu bytes", n);
        cr_expect_eq(scan(commands, n, 1, &at), AOF_UNFINISHED, "%zu bytes and a zero", n);
        cr_expect_eq(scan(commands, n, 300000, &at), AOF_UNFINISHED, "%zu bytes and zeros", n);
    }
}

Test(aof_scan, a_fault_with_something_behind_it_is_damage)
{
    char text[COMMANDS_N];
    int64_t at;
    for (size_t i = 0; i + 1 < COMMANDS_N; i++) {
        bool is_form = strchr("*$\r\n", commands[i]) != NULL;
        memcpy(text, commands, COMMANDS_N);
        text[i] = 0;
        if (!is_form || (i > 22 && i < 39) || (i > 63 && i < 77)) {
            continue; /* of a remark or of the value with line ends in it, or no form */
        }
        cr_expect_eq(scan(text, COMMANDS_N, 0, &at), AOF_DAMAGED, "byte %zu", i);
        cr_expect_eq(at, (int64_t)i, "byte %zu: %ld", i, (long)at);
    }
}

Test(aof_scan, transactions_have_a_begin_and_an_end)
{
    static const char *const wrong[] = {
        "*1\r\n$4\r\nEXEC\r\n",
        "*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nmulti\r\n*1\r\n$4\r\nEXEC\r\n",
        "*0\r\n",
        "*1\r\n$12345678901\r\n",
        "*1\r\n$\r\n",
        "*-1\r\n",
    };
    int64_t at;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cr_expect_eq(scan(wrong[i], strlen(wrong[i]), 0, &at), AOF_DAMAGED, "%s", wrong[i]);
    }
}

Test(aof_scan, long_values)
{
    const size_t room = 1200000, n = 1000000;
    char *text = calloc(room, 1);
    int64_t at;
    cr_assert_not_null(text);
    int head = snprintf(text, room, "*2\r\n$3\r\nGET\r\n$%zu\r\n", n);
    memset(text + head, '*', n);
    memcpy(text + head + n, "\r\n*1\r\n$4\r\nPING\r\n", 16);
    cr_expect_eq(scan(text, (size_t)head + n + 16, 0, &at), AOF_WHOLE);
    cr_expect_eq(scan(text, (size_t)head + n - 1, 0, &at), AOF_UNFINISHED);
    text[(size_t)head + n + 2] = '?';
    cr_expect_eq(scan(text, (size_t)head + n + 16, 0, &at), AOF_DAMAGED);
    cr_expect_eq(at, (int64_t)((size_t)head + n + 2));
    free(text);
}

Test(aof_scan, what_cannot_be_read)
{
    int64_t at;
    cr_expect_eq(aof_scan("/nonexistent/appendonly.aof", &at), AOF_UNREADABLE);
    cr_expect_eq(errno, ENOENT);
    cr_expect_eq(aof_scan("/tmp", &at), AOF_UNREADABLE);
}

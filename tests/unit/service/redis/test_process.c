#include "service/redis/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/base/clock.h"

TestSuite(process, .timeout = 60);

#define PATIENCE_MS 20000

/* A directory of its own, and a program that reads its input into its output. */
static char dir[64], output[80];
static const char *const cat[] = {"cat", NULL};

static void setup(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/tallyd-process-XXXXXX");
    cr_assert(mkdtemp(dir) != NULL);
    (void)snprintf(output, sizeof(output), "%s/output", dir);
}

static void teardown(void)
{
    (void)unlink(output);
    cr_expect_eq(rmdir(dir), 0);
}

static void expect_no_child(const char *what)
{
    cr_expect(waitpid(-1, NULL, 0) == -1 && errno == ECHILD, "%s left a child", what);
}

static int n_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) != -1;
    }
    return n;
}

/* The start fails with @expected and a text that begins with @text; nothing is left of it. */
static void expect_fault(const struct process_spec *spec, int expected, const char *text)
{
    int before = n_descriptors();
    struct process process = {.pid = -2, .pidfd = -2};
    char error[256] = "";
    cr_expect_not(process_start(spec, &process, error, sizeof(error)));
    cr_expect_eq(errno, expected, "%s: %s", error, strerror(errno));
    cr_expect_eq(strncmp(error, text, strlen(text)), 0, "%s", error);
    cr_expect(process.pid == -2 && process.pidfd == -2, "an out parameter stays as it is");
    cr_expect_eq(n_descriptors(), before, "%s", error);
    expect_no_child(error);
}

static void expect_output(const char *text)
{
    char got[64] = "";
    int fd = open(output, O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0);
    cr_assert(read(fd, got, sizeof(got) - 1) >= 0);
    cr_expect_str_eq(got, text);
    (void)close(fd);
}

Test(process, input_comes_out_and_the_end_is_told, .init = setup, .fini = teardown)
{
    struct process process;
    char error[256] = "";
    struct process_spec spec = {.argv = cat, .input = "bytes\n", .dir = dir, .output = output};
    cr_assert(process_start(&spec, &process, error, sizeof(error)), "%s", error);
    cr_assert(process_end(process.pidfd, 0, monotonic_ms() + PATIENCE_MS));
    int status = -1;
    cr_assert_eq(waitpid(process.pid, &status, 0), process.pid);
    cr_expect_eq(status, 0);
    expect_output("bytes\n");
    struct stat file;
    cr_expect(stat(output, &file) == 0 && (file.st_mode & 0777) == 0600);
    cr_expect(process_end(process.pidfd, SIGTERM, 0), "a process that is reaped has ended");
    cr_expect_eq(close(process.pidfd), 0);
}

Test(process, what_is_missing_is_named, .init = setup, .fini = teardown)
{
    static const char *const missing[] = {"/no/such/program", NULL};
    expect_fault(&(struct process_spec){.argv = missing, .dir = dir, .output = output}, ENOENT,
        "cannot run /no/such/program: ");
    expect_fault(&(struct process_spec){.program = dir, .argv = cat, .dir = dir, .output = output},
        EACCES, "cannot run /tmp/");
    expect_fault(&(struct process_spec){.argv = cat, .dir = "/no/such/place", .output = output},
        ENOENT, "cannot run cat: ");
    expect_fault(&(struct process_spec){.argv = cat, .dir = dir, .output = dir}, EISDIR,
        "cannot prepare cat: ");
}

/* A link in the directory could have us append to somebody's file. */
Test(process, output_is_no_link, .init = setup, .fini = teardown)
{
    cr_assert_eq(symlink("elsewhere", output), 0);
    expect_fault(&(struct process_spec){.argv = cat, .dir = dir, .output = output}, ELOOP,
        "cannot prepare cat: ");
}

/* Each descriptor of a start is the first one for which there is no room. */
Test(process, descriptors_may_run_out_anywhere, .init = setup, .fini = teardown)
{
    struct process_spec spec = {.argv = cat, .input = "x", .dir = dir, .output = output};
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct process process = {.pidfd = -1};
    char error[256] = "";
    int n_faults = 0;
    bool started = false;
    for (rlim_t most = 0; !started && most < 256; most++) {
        int held = n_descriptors();
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, before.rlim_max}), 0);
        started = process_start(&spec, &process, error, sizeof(error));
        int fault = errno;
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (!started) {
            n_faults++;
            /* EINVAL: a descriptor that is to be made from 4 on, and the limit is below that */
            cr_expect(fault == EMFILE || fault == EINVAL || fault == EBADF, "%s", error);
            cr_expect_eq(n_descriptors(), held, "%s", error);
            expect_no_child(error);
        }
    }
    cr_assert(started, "%s", error);
    cr_expect(n_faults > 4, "%d", n_faults);
    cr_expect(process_end(process.pidfd, SIGKILL, monotonic_ms() + PATIENCE_MS));
    cr_expect_eq(waitpid(process.pid, NULL, 0), process.pid);
    (void)close(process.pidfd);
}

Test(process, an_end_that_does_not_come_is_given_up, .init = setup, .fini = teardown)
{
    static const char *const sleep_long[] = {"sleep", "1000", NULL};
    struct process process;
    char error[256] = "";
    struct process_spec spec = {.argv = sleep_long, .dir = dir, .output = output};
    cr_assert(process_start(&spec, &process, error, sizeof(error)), "%s", error);
    cr_expect_not(process_end(process.pidfd, 0, monotonic_ms() - 1));
    cr_expect_not(process_end(process.pidfd, SIGCONT, monotonic_ms() + 20));
    cr_expect_not(process_end(-1, SIGTERM, monotonic_ms() + PATIENCE_MS), "no process at all");
    cr_expect(process_end(process.pidfd, SIGKILL, INT64_MAX));
    cr_expect_eq(waitpid(process.pid, NULL, 0), process.pid);
    (void)close(process.pidfd);
}

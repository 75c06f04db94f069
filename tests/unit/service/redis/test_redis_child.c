#include "service/redis/redis_child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/redis/data_dir.h"
#include "service/redis/process.h"
#include "storage/base/clock.h"

TestSuite(redis_child, .timeout = 60);

#define PATIENCE_MS 20000 /* for what should take milliseconds on an idle machine */

/* A child in a directory of its own. */
struct bench {
    char base[64], dir[80];
    struct redis_child_config config;
    struct redis_child *child;
    struct redis_child_report report;
};

static void bench_init(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    (void)snprintf(bench->base, sizeof(bench->base), "/tmp/tallyd-child-XXXXXX");
    cr_assert(mkdtemp(bench->base) != NULL);
    (void)snprintf(bench->dir, sizeof(bench->dir), "%s/data", bench->base);
    bench->config = (struct redis_child_config){.data_dir = bench->dir,
        .server = "redis-server",
        .maxmemory = 64 << 20,
        .fsync = REDIS_FSYNC_ALWAYS};
}

static void bench_open(struct bench *bench)
{
    char error[REDIS_CHILD_TEXT] = "";

    bench->child = redis_child_open(&bench->config, error);
    cr_assert(bench->child != NULL, "%s", error);
}

static void bench_start(struct bench *bench)
{
    cr_assert(
        redis_child_start(bench->child, monotonic_ms(), &bench->report), "%s", bench->report.text);
    cr_assert_eq(bench->report.outcome, REDIS_CHILD_STARTED);
    cr_assert(bench->report.pid > 0);
}

static void bench_close(struct bench *bench)
{
    char command[128];

    redis_child_close(bench->child);
    (void)snprintf(command, sizeof(command), "rm -rf %s", bench->base);
    cr_assert_eq(system(command), 0);
}

/* A connection to the directory's socket, -1 if nobody listens. */
static int connect_to(const char *dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(fd >= 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/redis.sock", dir);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        return fd;
    }
    (void)close(fd);
    return -1;
}

/* Send @command (inline form) and get the first bytes of the answer; false if there is none. */
static bool ask(const char *dir, const char *command, char *answer, size_t room)
{
    int fd = connect_to(dir);

    if (fd < 0) {
        return false;
    }

    struct pollfd readable = {.fd = fd, .events = POLLIN};
    bool ok = send(fd, command, strlen(command), MSG_NOSIGNAL) == (ssize_t)strlen(command) &&
              poll(&readable, 1, PATIENCE_MS) == 1;
    ssize_t n = ok ? read(fd, answer, room - 1) : -1;

    (void)close(fd);
    answer[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The socket appears and PING is answered, before the deadline and while @pidfd's process lives. */
static void wait_ready(const char *dir, int pidfd)
{
    int64_t deadline_ms = monotonic_ms() + PATIENCE_MS;
    char answer[64] = "";

    while (!ask(dir, "PING\r\n", answer, sizeof(answer)) || strcmp(answer, "+PONG\r\n") != 0) {
        struct pollfd end = {.fd = pidfd, .events = POLLIN};

        cr_assert(monotonic_ms() < deadline_ms, "not ready: %s", answer);
        cr_assert_eq(poll(&end, 1, 5), 0, "the server has ended");
    }
}

/* The main loop's part: wait for the child's end and report it. */
static void wait_exit(struct bench *bench)
{
    struct pollfd end = {.fd = redis_child_fd(bench->child), .events = POLLIN};

    cr_assert_eq(poll(&end, 1, PATIENCE_MS), 1);
    redis_child_on_exit(bench->child, monotonic_ms(), &bench->report);
    cr_assert_eq(bench->report.outcome, REDIS_CHILD_EXITED);
    cr_assert_eq(redis_child_fd(bench->child), -1);
}

/* A process of ours that is no child of @bench's: @argv in @dir. */
static struct process start_other(const char *const *argv, const char *dir)
{
    struct process process;
    char error[256] = "";
    struct process_spec spec = {.argv = argv, .dir = dir, .output = "/dev/null"};

    cr_assert(process_start(&spec, &process, error, sizeof(error)), "%s", error);
    return process;
}

static bool is_alive(int pidfd)
{
    return !process_end(pidfd, 0, 0);
}

static void end_other(struct process *process)
{
    cr_assert(process_end(process->pidfd, SIGKILL, monotonic_ms() + PATIENCE_MS));
    cr_assert_eq(waitpid(process->pid, NULL, 0), process->pid);
    cr_assert_eq(close(process->pidfd), 0);
}

static void write_pid(const char *dir, pid_t pid)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/redis.pid", dir);
    FILE *file = fopen(path, "we");

    cr_assert(file != NULL);
    cr_assert(fprintf(file, "%ld\n", (long)pid) > 0);
    cr_assert_eq(fclose(file), 0);
}

/* ---- what works ---- */

Test(redis_child, starts_answers_and_stops)
{
    struct bench bench;
    struct stat status;
    char answer[512], path[128];

    bench_init(&bench);
    bench_open(&bench);
    bench_start(&bench);
    pid_t pid = bench.report.pid;
    int watch = pidfd_open(pid, 0);

    cr_expect_eq(bench.report.orphan, 0);
    cr_expect_eq(redis_child_next_ms(bench.child), REDIS_CHILD_NEVER);
    wait_ready(bench.dir, redis_child_fd(bench.child));
    (void)snprintf(path, sizeof(path), "unix:%s/redis.sock", bench.dir);
    cr_expect_str_eq(redis_child_url(bench.child), path);
    cr_expect(stat(bench.dir, &status) == 0 && (status.st_mode & 0777) == 0700);
    cr_expect(stat(path + 5, &status) == 0 && (status.st_mode & 0777) == 0700);
    (void)snprintf(path, sizeof(path), "%s/redis.pid", bench.dir);
    cr_expect(stat(path, &status) == 0 && (status.st_mode & 077) == 0, "umask");
    cr_expect_eq(getpgid(pid), pid, "a process group of its own");

    cr_assert(ask(bench.dir,
        "CONFIG GET appendfsync maxmemory maxmemory-policy save appendonly lazyfree-lazy-expire "
        "lazyfree-lazy-server-del port\r\n",
        answer, sizeof(answer)));
    cr_expect(strstr(answer, "always") != NULL && strstr(answer, "67108864") != NULL &&
                  strstr(answer, "noeviction") != NULL &&
                  strstr(answer, "$4\r\nsave\r\n$0\r\n") != NULL,
        "%s", answer);

    redis_child_stop(bench.child, monotonic_ms() + PATIENCE_MS, &bench.report);
    cr_expect_eq(bench.report.outcome, REDIS_CHILD_EXITED);
    cr_expect_str_eq(bench.report.text, "exit status 0");
    cr_expect_not(is_alive(watch));
    cr_expect_eq(connect_to(bench.dir), -1);
    redis_child_stop(bench.child, monotonic_ms() + PATIENCE_MS, &bench.report);
    cr_expect_eq(bench.report.outcome, REDIS_CHILD_NOTHING);
    (void)close(watch);
    bench_close(&bench);
}

/* Descriptors of ours must not reach the server, nor our blocked and ignored signals. */
Test(redis_child, inherits_nothing)
{
    struct bench bench;
    char path[64], line[256];
    int pipe_fds[2];
    sigset_t usr1;

    cr_assert_eq(pipe(pipe_fds), 0); /* without O_CLOEXEC */
    cr_assert(signal(SIGHUP, SIG_IGN) != SIG_ERR && signal(SIGUSR2, SIG_IGN) != SIG_ERR);
    cr_assert(sigemptyset(&usr1) == 0 && sigaddset(&usr1, SIGUSR1) == 0);
    cr_assert_eq(sigprocmask(SIG_BLOCK, &usr1, NULL), 0);
    bench_init(&bench);
    bench_open(&bench);
    bench_start(&bench);
    wait_ready(bench.dir, redis_child_fd(bench.child));

    cr_assert_eq(close(pipe_fds[1]), 0);
    struct pollfd end = {.fd = pipe_fds[0], .events = POLLIN};
    cr_expect_eq(poll(&end, 1, 0), 1, "we had the last writing end");

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)bench.report.pid);
    FILE *file = fopen(path, "re");
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0) {
            cr_expect_eq(strtoull(line + 7, NULL, 16) & 1ull << (SIGUSR1 - 1), 0);
        }
        if (strncmp(line, "SigIgn:", 7) == 0) {
            cr_expect_eq(strtoull(line + 7, NULL, 16) & 1ull << (SIGUSR2 - 1), 0);
        }
    }
    (void)fclose(file);
    (void)close(pipe_fds[0]);
    bench_close(&bench);
}

Test(redis_child, is_started_again_after_a_kill)
{
    struct bench bench;
    char answer[64];

    bench_init(&bench);
    bench_open(&bench);
    bench_start(&bench);
    wait_ready(bench.dir, redis_child_fd(bench.child));
    cr_assert(ask(bench.dir, "SET kept yes\r\n", answer, sizeof(answer)));
    cr_assert_str_eq(answer, "+OK\r\n");
    pid_t first = bench.report.pid;

    redis_child_on_exit(bench.child, monotonic_ms(), &bench.report);
    cr_expect_eq(bench.report.outcome, REDIS_CHILD_NOTHING, "it still runs");

    cr_assert_eq(kill(first, SIGKILL), 0);
    wait_exit(&bench);
    cr_expect_eq(bench.report.pid, first);
    cr_expect_eq(bench.report.retry_in_ms, 100);
    cr_expect(strstr(bench.report.text, "killed by signal 9") != NULL, "%s", bench.report.text);

    int64_t next_ms = redis_child_next_ms(bench.child);

    redis_child_tick(bench.child, next_ms - 1, &bench.report);
    cr_expect_eq(bench.report.outcome, REDIS_CHILD_NOTHING, "too early");
    redis_child_tick(bench.child, next_ms, &bench.report);
    cr_assert_eq(bench.report.outcome, REDIS_CHILD_STARTED, "%s", bench.report.text);
    cr_expect_neq(bench.report.pid, first);
    cr_expect_eq(bench.report.orphan, 0);
    wait_ready(bench.dir, redis_child_fd(bench.child));
    cr_assert(ask(bench.dir, "GET kept\r\n", answer, sizeof(answer)));
    cr_expect_str_eq(answer, "$3\r\nyes\r\n");
    bench_close(&bench);
}

/* Time is a parameter: the back-off is walked through without waiting for it. */
Test(redis_child, backs_off_up_to_a_second_and_recovers)
{
    static const int64_t expected_ms[] = {100, 200, 400, 800, 1000, 1000, 1000, 1000};
    struct bench bench;
    int64_t now_ms = 1000;

    bench_init(&bench);
    bench.config.server = "/bin/false";
    bench_open(&bench);
    cr_assert(redis_child_start(bench.child, now_ms, &bench.report), "%s", bench.report.text);
    for (size_t i = 0; i < sizeof(expected_ms) / sizeof(expected_ms[0]); i++) {
        struct pollfd end = {.fd = redis_child_fd(bench.child), .events = POLLIN};

        cr_assert_eq(poll(&end, 1, PATIENCE_MS), 1);
        redis_child_on_exit(bench.child, now_ms, &bench.report);
        cr_expect_eq(bench.report.retry_in_ms, expected_ms[i]);
        cr_expect_str_eq(bench.report.text, "exit status 1");
        now_ms += expected_ms[i];
        cr_expect_eq(redis_child_next_ms(bench.child), now_ms);
        redis_child_tick(bench.child, now_ms, &bench.report);
        cr_assert_eq(bench.report.outcome, REDIS_CHILD_STARTED);
    }
    struct pollfd end = {.fd = redis_child_fd(bench.child), .events = POLLIN};

    cr_assert_eq(poll(&end, 1, PATIENCE_MS), 1);
    redis_child_on_exit(bench.child, now_ms + 10000, &bench.report);
    cr_expect_eq(bench.report.retry_in_ms, 100, "it ran for 10 s");
    bench_close(&bench);
}

/* The size of @name in the data directory; -1: there is none. */
static int64_t size_of(const struct bench *bench, const char *name)
{
    char path[128];
    struct stat is;

    (void)snprintf(path, sizeof(path), "%s/%s", bench->dir, name);
    return stat(path, &is) == 0 ? is.st_size : -1;
}

Test(redis_child, the_log_is_bounded)
{
    static const struct {
        int64_t size, left, old;
    } rows[] = {{1 << 20, 1 << 20, -1}, {(1 << 20) + 1, -1, (1 << 20) + 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench bench;
        char path[128];

        bench_init(&bench);
        bench.config.server = "/bin/false"; /* writes nothing */
        bench_open(&bench);
        (void)snprintf(path, sizeof(path), "%s/redis.log", bench.dir);
        FILE *file = fopen(path, "w");
        cr_assert(file != NULL && fclose(file) == 0 && truncate(path, rows[i].size) == 0);
        bench_start(&bench);
        cr_expect_leq(size_of(&bench, "redis.log"), rows[i].left < 0 ? 0 : rows[i].left);
        cr_expect_eq(size_of(&bench, "redis.log.1"), rows[i].old);
        bench_close(&bench);
    }
}

/* Start a redis-server as an earlier tallyd would have left it in @dir; with a pid file if
 * @pidfile. */
static struct process start_orphan(const char *dir, bool pidfile)
{
    char socket_path[128], pid_path[128];

    (void)snprintf(socket_path, sizeof(socket_path), "%s/redis.sock", dir);
    (void)snprintf(pid_path, sizeof(pid_path), "%s/redis.pid", dir);
    const char *const argv[] = {"redis-server", "--port", "0", "--unixsocket", socket_path,
        "--save", "", pidfile ? "--pidfile" : NULL, pid_path, NULL};
    struct process orphan = start_other(argv, dir);

    wait_ready(dir, orphan.pidfd);
    return orphan;
}

static void expect_orphan_replaced(bool pidfile)
{
    struct bench bench;

    bench_init(&bench);
    bench_open(&bench);
    struct process orphan = start_orphan(bench.dir, pidfile);
    char path[128];

    /* Found by one of the two alone: nobody can connect without the socket's file. */
    (void)snprintf(path, sizeof(path), "%s/redis.sock", bench.dir);
    if (pidfile) {
        cr_assert_eq(unlink(path), 0);
    }
    bench_start(&bench);
    cr_expect_not(is_alive(orphan.pidfd));
    cr_expect_eq(bench.report.orphan, orphan.pid);
    cr_expect_not(bench.report.orphan_forced);
    wait_ready(bench.dir, redis_child_fd(bench.child));
    end_other(&orphan);
    bench_close(&bench);
}

Test(redis_child, replaces_an_orphan_found_by_its_pid_file)
{
    expect_orphan_replaced(true);
}

Test(redis_child, replaces_an_orphan_found_by_its_socket)
{
    expect_orphan_replaced(false);
}

Test(redis_child, kills_an_orphan_that_does_not_listen_to_reason)
{
    struct bench bench;

    bench_init(&bench);
    bench.config.orphan_patience_ms = 50;
    bench_open(&bench);
    struct process orphan = start_orphan(bench.dir, true);

    cr_assert_eq(kill(orphan.pid, SIGSTOP), 0); /* SIGTERM waits, SIGKILL does not */
    bench_start(&bench);
    cr_expect_not(is_alive(orphan.pidfd));
    cr_expect_eq(bench.report.orphan, orphan.pid);
    cr_expect(bench.report.orphan_forced);
    end_other(&orphan);
    bench_close(&bench);
}

/* A tallyd that is killed takes its server with it: PDEATHSIG. */
Test(redis_child, ends_with_its_parent)
{
    struct bench bench;
    int pipe_fds[2];
    pid_t redis_pid;

    bench_init(&bench);
    cr_assert_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    /* Whatever the dead parent leaves becomes our child, so that its pid cannot be reused. */
    cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t parent = fork();

    cr_assert(parent >= 0);
    if (parent == 0) {
        char error[REDIS_CHILD_TEXT];

        bench.child = redis_child_open(&bench.config, error);
        if (bench.child == NULL || !redis_child_start(bench.child, 0, &bench.report) ||
            write(pipe_fds[1], &bench.report.pid, sizeof(pid_t)) != sizeof(pid_t)) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    struct pollfd told = {.fd = pipe_fds[0], .events = POLLIN};

    cr_assert_eq(poll(&told, 1, PATIENCE_MS), 1);
    cr_assert_eq(read(pipe_fds[0], &redis_pid, sizeof(redis_pid)), (ssize_t)sizeof(redis_pid));
    int watch = pidfd_open(redis_pid, 0);

    cr_assert(watch >= 0);
    wait_ready(bench.dir, watch);
    cr_assert_eq(kill(parent, SIGKILL), 0);
    cr_assert_eq(waitpid(parent, NULL, 0), parent);
    cr_expect(process_end(watch, 0, monotonic_ms() + PATIENCE_MS));
    cr_expect_eq(waitpid(redis_pid, NULL, 0), redis_pid);
    (void)close(watch);
    bench_close(&bench);
}

Test(redis_child, close_leaves_nothing_running)
{
    struct bench bench;

    bench_init(&bench);
    bench_open(&bench);
    bench_start(&bench);
    int watch = pidfd_open(bench.report.pid, 0);

    redis_child_close(bench.child);
    bench.child = NULL;
    cr_expect_not(is_alive(watch));
    (void)close(watch);
    bench_open(&bench); /* the lock is free again */
    bench_close(&bench);
}

Test(redis_child, stop_kills_at_the_deadline)
{
    struct bench bench;

    bench_init(&bench);
    bench_open(&bench);
    bench_start(&bench);
    wait_ready(bench.dir, redis_child_fd(bench.child));
    cr_assert_eq(kill(bench.report.pid, SIGSTOP), 0);
    redis_child_stop(bench.child, monotonic_ms() + 50, &bench.report);
    cr_expect_eq(bench.report.outcome, REDIS_CHILD_EXITED);
    cr_expect(strstr(bench.report.text, "killed by signal 9") != NULL, "%s", bench.report.text);
    cr_expect_eq(redis_child_next_ms(bench.child), REDIS_CHILD_NEVER);
    bench_close(&bench);
}

Test(redis_child, relative_paths_are_kept)
{
    struct bench bench;
    char link[128];

    bench_init(&bench);
    (void)snprintf(link, sizeof(link), "%s/redis-server", bench.base);
    cr_assert_eq(symlink("/usr/bin/redis-server", link), 0);
    cr_assert_eq(chdir(bench.base), 0);
    bench.config.server = "./redis-server";
    bench.config.data_dir = "data";
    bench_open(&bench);
    bench_start(&bench);
    wait_ready(bench.dir, redis_child_fd(bench.child));
    cr_assert_eq(chdir("/"), 0);
    bench_close(&bench);
}

/* ---- what is refused ---- */

Test(redis_child, a_second_lock_is_refused)
{
    struct bench bench;
    char error[REDIS_CHILD_TEXT] = "", holder[32];

    bench_init(&bench);
    bench_open(&bench);
    cr_expect(redis_child_open(&bench.config, error) == NULL);
    (void)snprintf(holder, sizeof(holder), "(process %ld)", (long)getpid());
    cr_expect(strstr(error, "in use by another tallyd") != NULL, "%s", error);
    cr_expect(strstr(error, holder) != NULL, "%s", error);
    bench_close(&bench);
}

Test(redis_child, too_long_a_path_is_refused)
{
    struct bench bench;
    char error[REDIS_CHILD_TEXT] = "", dir[256];
    size_t n;

    bench_init(&bench);
    n = strlen(bench.base);
    memset(dir, 'd', sizeof(dir));
    memcpy(dir, bench.base, n);
    dir[n] = '/';
    dir[107 - 11] = '\0'; /* with "/redis.sock" 107 bytes: the longest */
    bench.config.data_dir = dir;
    bench_open(&bench);
    bench_start(&bench);
    wait_ready(dir, redis_child_fd(bench.child));
    redis_child_close(bench.child);

    dir[107 - 11] = 'd';
    dir[107 - 10] = '\0';
    bench.child = redis_child_open(&bench.config, error);
    cr_expect(bench.child == NULL);
    cr_expect(strstr(error, "too long") != NULL && strstr(error, "108 bytes") != NULL, "%s", error);
    bench_close(&bench);
}

Test(redis_child, no_directory)
{
    struct bench bench;
    char error[REDIS_CHILD_TEXT] = "";

    bench_init(&bench);
    bench.config.data_dir = "/nonexistent/data";
    cr_expect(redis_child_open(&bench.config, error) == NULL);
    cr_expect(strstr(error, "/nonexistent/data: No such file") != NULL, "%s", error);
    bench.config.data_dir = "/dev/null";
    cr_expect(redis_child_open(&bench.config, error) == NULL);
    cr_expect(strstr(error, "is no directory") != NULL, "%s", error);
    bench_close(&bench);
}

Test(redis_child, no_binary)
{
    struct bench bench;

    bench_init(&bench);
    bench.config.server = "/nonexistent/redis-server";
    bench_open(&bench);
    cr_expect_not(redis_child_start(bench.child, 0, &bench.report));
    cr_expect_eq(bench.report.outcome, REDIS_CHILD_FAILED);
    cr_expect_not_null(strstr(bench.report.text, "there is no /nonexistent/redis-server: install"));
    cr_expect_eq(redis_child_next_ms(bench.child), REDIS_CHILD_NEVER);
    cr_expect_eq(redis_child_fd(bench.child), -1);
    bench_close(&bench);
}

Test(redis_child, a_binary_that_vanishes_is_tried_again)
{
    struct bench bench;
    char link[128];

    bench_init(&bench);
    (void)snprintf(link, sizeof(link), "%s/redis-server", bench.base);
    cr_assert_eq(symlink("/usr/bin/redis-server", link), 0);
    bench.config.server = link;
    bench_open(&bench);
    bench_start(&bench);
    cr_assert_eq(unlink(link), 0);
    cr_assert_eq(kill(bench.report.pid, SIGKILL), 0);
    wait_exit(&bench);
    redis_child_tick(bench.child, redis_child_next_ms(bench.child), &bench.report);
    cr_expect_eq(bench.report.outcome, REDIS_CHILD_FAILED);
    cr_expect_eq(bench.report.retry_in_ms, 200);
    bench_close(&bench);
}

/* The pid file names a process that is no server, or a server of another directory. */
Test(redis_child, a_reused_pid_is_not_touched)
{
    static const char *const sleeper[] = {"sleep", "1000", NULL};
    static const char *const elsewhere[] = {
        "redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", "", NULL};
    struct bench bench;

    bench_init(&bench);
    bench_open(&bench);
    struct process others[] = {start_other(sleeper, bench.dir), start_other(elsewhere, bench.base)};

    wait_ready(bench.base, others[1].pidfd);
    for (size_t i = 0; i < 2; i++) {
        write_pid(bench.dir, others[i].pid);
        bench_start(&bench);
        cr_expect_eq(bench.report.orphan, 0);
        cr_expect(is_alive(others[i].pidfd));
        wait_ready(bench.dir, redis_child_fd(bench.child));
        redis_child_stop(bench.child, monotonic_ms() + PATIENCE_MS, &bench.report);
        end_other(&others[i]);
    }
    bench_close(&bench);
}

Test(redis_child, nonsense_in_the_pid_file_is_passed_over)
{
    static const pid_t pids[] = {0, 1, -1, INT_MAX};
    struct bench bench;

    bench_init(&bench);
    bench_open(&bench);
    for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
        write_pid(bench.dir, pids[i]);
        bench_start(&bench);
        cr_expect_eq(bench.report.orphan, 0);
        redis_child_stop(bench.child, 0, &bench.report);
    }
    bench_close(&bench);
}

/* Somebody who is no orphan of ours answers on the socket: Redis would take the path over. */
Test(redis_child, a_foreign_listener_is_refused)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct bench bench;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    bench_init(&bench);
    bench_open(&bench);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/redis.sock", bench.dir);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(fd, 4), 0);
    cr_expect_not(redis_child_start(bench.child, 0, &bench.report));
    cr_expect(
        strstr(bench.report.text, "a server that is not ours") != NULL, "%s", bench.report.text);
    cr_assert_eq(close(fd), 0);
    bench_start(&bench); /* the dead socket it left is in nobody's way */
    wait_ready(bench.dir, redis_child_fd(bench.child));
    bench_close(&bench);
}

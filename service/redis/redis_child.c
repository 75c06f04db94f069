#include "service/redis/redis_child.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/redis/data_dir.h"
#include "service/redis/process.h"
#include "service/redis/redis_mend.h"
#include "service/redis/redis_orphan.h"
#include "storage/base/clock.h"

#define BACKOFF_MIN_MS     100
#define BACKOFF_MAX_MS     1000  /* less than the 2 s after which events must be taken again */
#define STEADY_MS          10000 /* a server that ran this long is not failing over and over */
#define ORPHAN_PATIENCE_MS 10000
#define LOG_MAX            (1024 * 1024)

#define SOCKET_NAME "redis.sock"

struct redis_child {
    struct data_dir dir;
    char *server;
    int64_t maxmemory;
    enum redis_fsync fsync;
    int orphan_patience_ms;
    char log[PATH_MAX + 16]; /* the path of the server's log */
    char url[sizeof("unix:") + sizeof(((struct sockaddr_un *)NULL)->sun_path)];

    struct process process; /* pidfd -1: no server runs */
    int64_t started_ms;
    int64_t next_ms;
    int64_t backoff_ms; /* how long the next start waits after an end */
};

/* The socket's path must fit into a sockaddr_un: hiredis would cut a longer path silently. */
static bool fill_url(struct redis_child *child, char *error)
{
    size_t n = strlen(child->dir.path) + sizeof("/" SOCKET_NAME) - 1;
    size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    if (n > max) {
        (void)snprintf(error, REDIS_CHILD_TEXT,
            "the data directory's path is too long: its socket's would have %zu bytes, at most %zu "
            "are possible",
            n, max);
        return false;
    }
    /* The precision is for the compiler: after the check it cannot cut. */
    (void)snprintf(child->url, sizeof(child->url), "unix:%.*s/" SOCKET_NAME,
        (int)(max - sizeof("/" SOCKET_NAME) + 1), child->dir.path);
    return true;
}

/* The server is started in another directory, so a relative path must be made absolute now.  A bare
 * name stays, because PATH decides what it means.  Links are not resolved: redis-server may be a
 * link to a binary that looks at its own name.  The caller frees the result; NULL on failure. */
static char *absolute_path(const char *server)
{
    if (server[0] == '/' || strchr(server, '/') == NULL) {
        return strdup(server);
    }
    char *path = NULL;
    char *here = getcwd(NULL, 0);
    if (here != NULL && asprintf(&path, "%s/%s", here, server) < 0) {
        path = NULL;
    }
    free(here);
    return path;
}

struct redis_child *redis_child_open(const struct redis_child_config *config, char *ret_error)
{
    struct redis_child *child = calloc(1, sizeof(*child));
    if (child != NULL) {
        child->dir.lock_fd = -1;
        child->process.pidfd = -1;
        child->server = absolute_path(config->server);
    }
    if (child == NULL || child->server == NULL) {
        (void)snprintf(
            ret_error, REDIS_CHILD_TEXT, "cannot find %s: %s", config->server, strerror(errno));
        goto fail;
    }
    child->maxmemory = config->maxmemory;
    child->fsync = config->fsync;
    child->orphan_patience_ms =
        config->orphan_patience_ms > 0 ? config->orphan_patience_ms : ORPHAN_PATIENCE_MS;
    child->next_ms = REDIS_CHILD_NEVER;
    child->backoff_ms = BACKOFF_MIN_MS;
    if (!data_dir_open(&child->dir, config->data_dir, ret_error, REDIS_CHILD_TEXT) ||
        !fill_url(child, ret_error)) {
        goto fail;
    }
    (void)snprintf(child->log, sizeof(child->log), "%s/redis.log", child->dir.path);
    return child;
fail:
    redis_child_close(child);
    return NULL;
}

const char *redis_child_url(const struct redis_child *child)
{
    return child->url;
}

int redis_child_fd(const struct redis_child *child)
{
    return child->process.pidfd;
}

int64_t redis_child_next_ms(const struct redis_child *child)
{
    return child->next_ms;
}

static void say_what_to_install(const struct redis_child *child, char *error)
{
    (void)snprintf(error, REDIS_CHILD_TEXT,
        "there is no %.200s: install redis-server, name one with --redis-server PATH, or use a "
        "Redis of your own with --redis URL",
        child->server);
}

static bool spawn(struct redis_child *child, char *error)
{
    static const char *const fsync_names[] = {"always", "everysec"};
    char *dir = child->dir.path;
    char maxmemory[32], pid[PATH_MAX + 16];
    (void)snprintf(maxmemory, sizeof(maxmemory), "%" PRId64, child->maxmemory);
    (void)snprintf(pid, sizeof(pid), "%s/redis.pid", dir);
    /* An option and its value stand on one line. */
    /* clang-format off */
    const char *const argv[] = {
        child->server,
        "--port", "0",
        "--unixsocket", child->url + sizeof("unix:") - 1,
        "--unixsocketperm", "700",
        "--dir", dir,
        "--pidfile", pid,
        "--logfile", child->log,
        "--daemonize", "no",
        "--supervised", "no",
        "--appendonly", "yes",
        "--appendfsync", fsync_names[child->fsync],
        "--save", "",
        /* 100,000 events a second write 64 MB, Redis's default, in 4 s.  A child that rewrites the
         * file takes one core, and on two cores a third of the rate.  So the file grows to three
         * times what the last rewrite left.  A start reads 512 MB in about 6 s. */
        "--auto-aof-rewrite-percentage", "200",
        "--auto-aof-rewrite-min-size", "512mb",
        /* A full Redis must refuse writes, and forget nothing. */
        "--maxmemory", maxmemory,
        "--maxmemory-policy", "noeviction",
        /* Redis must not stop while large keys are freed. */
        "--lazyfree-lazy-expire", "yes",
        "--lazyfree-lazy-server-del", "yes",
        "--lazyfree-lazy-user-del", "yes",
        /* A listpack is searched from its beginning: one of 512 pages, Redis's default, costs 7 %
         * of the rate of batches. */
        "--hash-max-listpack-entries", "128",
        NULL,
    };
    /* clang-format on */
    struct process_spec spec = {
        .argv = argv, .dir = dir, .output = child->log, .short_slices = true};
    return process_start(&spec, &child->process, error, REDIS_CHILD_TEXT);
}

/* Keep the log from growing without bound: a server that ends at each start writes to it each
 * time. */
static void bound_log(const struct redis_child *child)
{
    struct stat is;
    char old[sizeof(child->log) + 2];
    if (stat(child->log, &is) == 0 && is.st_size > LOG_MAX) {
        (void)snprintf(old, sizeof(old), "%s.1", child->log);
        (void)rename(child->log, old);
    }
}

bool redis_child_start(struct redis_child *child, int64_t now_ms, struct redis_child_report *report)
{
    struct orphan orphan;
    *report = (struct redis_child_report){
        .outcome = REDIS_CHILD_FAILED, .retry_in_ms = -1, .disk_full = data_dir_full(&child->dir)};
    bound_log(child);
    errno = 0;
    if (!redis_orphan_end(child->dir.path, child->server, child->orphan_patience_ms, &orphan,
            report->text, sizeof(report->text)) ||
        !redis_mend(child->dir.path, child->server, child->log, &report->cut, report->text,
            sizeof(report->text)) ||
        !spawn(child, report->text)) {
        if (errno == ENOENT &&
            strncmp(report->text, PROCESS_CANNOT_RUN, sizeof(PROCESS_CANNOT_RUN) - 1) == 0) {
            say_what_to_install(child, report->text);
        }
        return false;
    }
    child->started_ms = now_ms;
    child->next_ms = REDIS_CHILD_NEVER;
    report->outcome = REDIS_CHILD_STARTED;
    report->pid = child->process.pid;
    report->orphan = orphan.pid;
    report->orphan_forced = orphan.forced;
    return true;
}

static void schedule(struct redis_child *child, int64_t now_ms, struct redis_child_report *report)
{
    report->retry_in_ms = child->backoff_ms;
    child->next_ms = now_ms + child->backoff_ms;
    child->backoff_ms *= 2;
    if (child->backoff_ms > BACKOFF_MAX_MS) {
        child->backoff_ms = BACKOFF_MAX_MS;
    }
}

static void describe_end(const siginfo_t *end, char *text)
{
    const char *name = end->si_code == CLD_EXITED ? NULL : sigdescr_np(end->si_status);
    if (end->si_code == CLD_EXITED) {
        (void)snprintf(text, REDIS_CHILD_TEXT, "exit status %d", end->si_status);
    } else {
        (void)snprintf(text, REDIS_CHILD_TEXT, "killed by signal %d (%s)", end->si_status,
            name != NULL ? name : "unknown");
    }
}

/* Reap the child if it has ended.  False: no child has ended. */
static bool reap(struct redis_child *child, struct redis_child_report *report)
{
    siginfo_t end = {.si_pid = 0};
    *report = (struct redis_child_report){.outcome = REDIS_CHILD_NOTHING, .retry_in_ms = -1};
    if (child->process.pidfd < 0) {
        return false;
    }
    if (waitid(P_PIDFD, (id_t)child->process.pidfd, &end, WEXITED | WNOHANG) != 0) {
        (void)snprintf(report->text, sizeof(report->text), "somebody else has reaped it");
    } else if (end.si_pid == 0) {
        return false;
    } else {
        describe_end(&end, report->text);
    }
    report->outcome = REDIS_CHILD_EXITED;
    report->pid = child->process.pid;
    (void)close(child->process.pidfd);
    child->process.pidfd = -1;
    return true;
}

void redis_child_on_exit(
    struct redis_child *child, int64_t now_ms, struct redis_child_report *report)
{
    if (!reap(child, report)) {
        return;
    }
    if (now_ms - child->started_ms >= STEADY_MS) {
        child->backoff_ms = BACKOFF_MIN_MS;
    }
    report->disk_full = data_dir_full(&child->dir);
    schedule(child, now_ms, report);
}

void redis_child_tick(struct redis_child *child, int64_t now_ms, struct redis_child_report *report)
{
    *report = (struct redis_child_report){.outcome = REDIS_CHILD_NOTHING, .retry_in_ms = -1};
    if (now_ms < child->next_ms || child->process.pidfd >= 0) {
        return;
    }
    if (!redis_child_start(child, now_ms, report)) {
        schedule(child, now_ms, report);
    }
}

void redis_child_stop(
    struct redis_child *child, int64_t deadline_ms, struct redis_child_report *report)
{
    int pidfd = child->process.pidfd;
    child->next_ms = REDIS_CHILD_NEVER;
    if (pidfd >= 0 && !process_end(pidfd, SIGTERM, deadline_ms)) {
        (void)process_end(pidfd, SIGKILL, monotonic_ms() + PROCESS_KILL_MS);
    }
    (void)reap(child, report);
}

void redis_child_close(struct redis_child *child)
{
    struct redis_child_report report;
    if (child == NULL) {
        return;
    }
    redis_child_stop(child, 0, &report);
    if (child->process.pidfd >= 0) {
        (void)close(child->process.pidfd);
    }
    data_dir_close(&child->dir);
    free(child->server);
    free(child);
}

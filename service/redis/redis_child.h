/* redis_child.h - the embedded Redis: a redis-server of our own, started again when it dies.
 *
 * Layer: service.  Has no thread and does not log: the main loop polls redis_child_fd(), calls
 * redis_child_on_exit() when it is readable and redis_child_tick() when redis_child_next_ms() is
 * reached, and logs the reports it gets.
 *
 * The server works in the data directory (data_dir.h: locked while the struct lives), listens on
 * redis.sock in it and on no port, keeps an append-only file, and writes redis.log.  It has a
 * process group of its own, so a Ctrl-C in the terminal reaches tallyd alone; it gets SIGTERM when
 * the thread that started it ends.  A server that an earlier tallyd left behind is ended before
 * every start, and half a transaction that it left is taken away (redis_mend.h). After it died it
 * is started again in 100 ms, twice that after each further death up to 5 s, and 100 ms again once
 * it has run for 10 s.
 *
 * Times are CLOCK_MONOTONIC milliseconds, read by the caller.  SIGCHLD must not be ignored and
 * nobody else may wait for the child.
 *
 * Thread safety: all functions from one thread, the one that lives as long as the process
 * (PDEATHSIG is bound to the thread that forks).
 */
#ifndef SERVICE_REDIS_REDIS_CHILD_H
#define SERVICE_REDIS_REDIS_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "service/options/values.h"

#define REDIS_CHILD_TEXT  512
#define REDIS_CHILD_NEVER INT64_MAX

struct redis_child_config {
    const char *data_dir;
    const char *server; /* path of the binary, or a name to look up in PATH */
    int64_t maxmemory;  /* bytes */
    enum redis_fsync fsync;
    int orphan_patience_ms; /* from SIGTERM to SIGKILL for an orphan; 0: 10 s */
};

enum redis_child_outcome {
    REDIS_CHILD_NOTHING, /* there was nothing to do */
    REDIS_CHILD_STARTED,
    REDIS_CHILD_EXITED,
    REDIS_CHILD_FAILED, /* could not be started */
};

/* What happened, for the log. */
struct redis_child_report {
    enum redis_child_outcome outcome;
    pid_t pid;                   /* STARTED, EXITED */
    pid_t orphan;                /* STARTED: the orphan that was ended before, 0: none */
    bool orphan_forced;          /* it had to be killed */
    int64_t retry_in_ms;         /* EXITED, FAILED: when it is started again; -1: never */
    char text[REDIS_CHILD_TEXT]; /* EXITED: how it ended; FAILED: why */
};

struct redis_child;

/* Create and lock the data directory.  @config is copied, strings too.  NULL: @ret_error
 * (REDIS_CHILD_TEXT bytes) says why: no such directory, another tallyd has it, its path is too
 * long. */
struct redis_child *redis_child_open(const struct redis_child_config *config, char *ret_error)
    __attribute__((warn_unused_result));

/* "unix:/absolute/path/redis.sock", what storage connects to; lives as long as @child. */
const char *redis_child_url(const struct redis_child *child);

/* The first start.  Waits for an orphan's end, not for the server's readiness.  False: FAILED, and
 * no other try is scheduled. */
bool redis_child_start(struct redis_child *child, int64_t now_ms, struct redis_child_report *report)
    __attribute__((warn_unused_result));

/* The pidfd to poll for POLLIN; -1 while no server runs. */
int redis_child_fd(const struct redis_child *child);

/* The pidfd was readable: reap, and schedule the next start.  EXITED or NOTHING. */
void redis_child_on_exit(
    struct redis_child *child, int64_t now_ms, struct redis_child_report *report);

/* When redis_child_tick() has something to do; REDIS_CHILD_NEVER: only after an exit. */
int64_t redis_child_next_ms(const struct redis_child *child);

/* Start it again if that is due.  STARTED, FAILED (another try is scheduled) or NOTHING. */
void redis_child_tick(struct redis_child *child, int64_t now_ms, struct redis_child_report *report);

/* End it for good: SIGTERM, and SIGKILL at @deadline_ms.  EXITED, or NOTHING if none ran. */
void redis_child_stop(
    struct redis_child *child, int64_t deadline_ms, struct redis_child_report *report);

/* Kill what still runs, give the lock back and free.  NULL is harmless. */
void redis_child_close(struct redis_child *child);

#endif

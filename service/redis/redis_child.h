/* redis_child.h - the embedded Redis: a redis-server that tallyd starts, and restarts when it dies.
 *
 * Layer: service.  Has no thread and does not log.  The main loop polls redis_child_fd().  When
 * that is readable, the loop calls redis_child_on_exit().  When redis_child_next_ms() is reached,
 * the loop calls redis_child_tick().  The loop logs the reports that these functions give.
 *
 * The server works in the data directory, which is locked while the struct lives (data_dir.h).  The
 * server listens on the socket redis.sock there and on no port, keeps an append-only file, and
 * writes redis.log.  A start renames a log of more than 1 MiB to redis.log.1.  The server's process
 * group is its own, so a Ctrl-C in the terminal reaches tallyd alone.  The server gets SIGTERM when
 * the thread ends that started it.
 *
 * Before every start, a server that an earlier tallyd left is ended (redis_orphan.h), and half a
 * transaction that such a server left is taken away (redis_mend.h).  After a death the server is
 * started again in 100 ms.  The wait doubles with each further death, up to 1 s, and is 100 ms
 * again once a server has run for 10 s.
 *
 * Times are milliseconds of CLOCK_MONOTONIC, read by the caller.  SIGCHLD must not be ignored, and
 * nobody else may wait for the child.
 *
 * Thread safety: all functions from one thread, which must live as long as the process: the
 * server's signal (PDEATHSIG) is bound to the thread that forks.
 */
#ifndef SERVICE_REDIS_REDIS_CHILD_H
#define SERVICE_REDIS_REDIS_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "service/options/values.h"
#include "storage/base/compiler.h"

#define REDIS_CHILD_TEXT  512
#define REDIS_CHILD_NEVER INT64_MAX

struct redis_child_config {
    const char *data_dir;
    const char *server; /* path of the binary, or a name to look up in PATH */
    int64_t maxmemory;  /* bytes */
    enum redis_fsync fsync;
    int orphan_patience_ms; /* an orphan gets SIGKILL so long after SIGTERM; 0: 10 s */
};

enum redis_child_outcome {
    REDIS_CHILD_NOTHING, /* there was nothing to do */
    REDIS_CHILD_STARTED, /* the server was started */
    REDIS_CHILD_EXITED,  /* the server has ended */
    REDIS_CHILD_FAILED,  /* the server could not be started */
};

/* What happened, for operators. */
struct redis_child_report {
    enum redis_child_outcome outcome;
    pid_t pid;                   /* STARTED, EXITED: the server's */
    pid_t orphan;                /* STARTED: the orphan that was ended before, 0: none */
    bool orphan_forced;          /* the orphan had to be killed */
    int64_t cut;                 /* STARTED: bytes of an unfinished write that were taken away */
    int64_t retry_in_ms;         /* EXITED, FAILED: ms until the next start; -1: there is none */
    bool disk_full;              /* the data directory's disk has no room; not for NOTHING */
    char text[REDIS_CHILD_TEXT]; /* EXITED: how the server ended; FAILED: why */
};

struct redis_child;

/* Create and lock the data directory.  @config is copied, strings too.  NULL: *ret_error,
 * REDIS_CHILD_TEXT bytes, says why.  The directory may be missing or in use by another tallyd, or
 * its path may be too long. */
struct redis_child *redis_child_open(
    const struct redis_child_config *config, char *ret_error) MUST_CHECK;

/* The address for storage, "unix:/absolute/path/redis.sock".  The text lives as long as @child. */
const char *redis_child_url(const struct redis_child *child);

/* Start the server for the first time.  This waits for an orphan's end, and not until the server is
 * ready.  False: the report is FAILED, and no other try is scheduled. */
bool redis_child_start(
    struct redis_child *child, int64_t now_ms, struct redis_child_report *report) MUST_CHECK;

/* The pidfd to poll for POLLIN; -1 while no server runs. */
int redis_child_fd(const struct redis_child *child);

/* The pidfd was readable: reap the child and schedule the next start.  The report is EXITED or
 * NOTHING. */
void redis_child_on_exit(
    struct redis_child *child, int64_t now_ms, struct redis_child_report *report);

/* When redis_child_tick() has work; REDIS_CHILD_NEVER as long as the server runs. */
int64_t redis_child_next_ms(const struct redis_child *child);

/* Start the server again if that is due.  The report is STARTED or NOTHING, or FAILED with another
 * try scheduled. */
void redis_child_tick(struct redis_child *child, int64_t now_ms, struct redis_child_report *report);

/* End the server for good, with SIGTERM and, at @deadline_ms, SIGKILL.  The report is EXITED, or
 * NOTHING if no server ran. */
void redis_child_stop(
    struct redis_child *child, int64_t deadline_ms, struct redis_child_report *report);

/* Kill a server that still runs, give the lock back, and free.  NULL is fine. */
void redis_child_close(struct redis_child *child);

#endif

/* process.h - start a program as a child of our own, and watch and end processes through pidfds.
 *
 * Layer: service.  Does not log.
 * A pidfd names one process for ever: unlike a pid it is never another one's.  It is readable from
 * the process's end on.
 *
 * Thread safety: any thread; but the child gets SIGTERM when the thread that started it ends.
 */
#ifndef SERVICE_REDIS_PROCESS_H
#define SERVICE_REDIS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_spec {
    const char *program; /* looked up in PATH if it has no slash; NULL: argv[0] */
    const char *const *argv;
    const char *input;  /* what stdin has; NULL: nothing */
    const char *dir;    /* working directory */
    const char *output; /* file, created 0600 if missing, that stdout and stderr are appended to */
    bool
        short_slices; /* others wait for it: see scheduler.h; where it is refused it runs without */
};

struct process {
    pid_t pid;
    int pidfd; /* O_CLOEXEC, the caller closes it */
};

/* Start the program: in a process group of its own, umask 077, signals as by default, no
 * other descriptor of ours open.  True: it is being executed; the caller has to reap it.  False:
 * @error says why, also where the binary is missing. */
bool process_start(const struct process_spec *spec, struct process *ret, char *error, size_t room)
    __attribute__((warn_unused_result));

/* Send @signal (0: none) through @pidfd and wait until @deadline_ms (CLOCK_MONOTONIC) for the end:
 * true if it came.  A child is not reaped by it. */
bool process_end(int pidfd, int signal, int64_t deadline_ms);

#endif

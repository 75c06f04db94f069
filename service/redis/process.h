/* process.h - start a program as a child, and wait for the end of a process through its pidfd.
 *
 * Layer: service.  Does not log.
 * A pidfd is a descriptor that names one process for ever.  A pid may be given to another process
 * later; a pidfd is not.  The descriptor is readable from the end of its process on.
 *
 * Thread safety: any thread.  The child gets SIGTERM when the thread ends that started the child.
 */
#ifndef SERVICE_REDIS_PROCESS_H
#define SERVICE_REDIS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "storage/base/compiler.h"

struct process_spec {
    const char *program; /* looked up in PATH if there is no slash in the name; NULL: argv[0] */
    const char *const *argv;
    const char *input;  /* the text of stdin; NULL: stdin is empty */
    const char *dir;    /* the child's working directory */
    const char *output; /* file, created 0600 if missing, that stdout and stderr are appended to */
    bool short_slices;  /* ask for short time slices, if the kernel lets us: scheduler.h */
};

struct process {
    pid_t pid;
    int pidfd; /* O_CLOEXEC; the caller closes this descriptor */
};

#define PROCESS_CANNOT_RUN                                                                         \
    "cannot run" /* begins the error where there is no such program, or none that runs */

/* Start a program.  The child has a process group of its own, umask 077, default signals, and none
 * of our other descriptors.  True: the program is being executed, and the caller has to reap the
 * child. False: @error, cut to @room bytes, says why, and so does errno: ENOENT, the binary is
 * missing. */
bool process_start(
    const struct process_spec *spec, struct process *ret, char *error, size_t room) MUST_CHECK;

/* SIGKILL ends a process at once, unless the process is stuck in the kernel: wait so long at
 * most. */
#define PROCESS_KILL_MS 5000

/* Send @signal (0: none) through @pidfd, and wait until @deadline_ms (CLOCK_MONOTONIC) for the end
 * of the process.  True: the process has ended.  A child is not reaped. */
bool process_end(int pidfd, int signal, int64_t deadline_ms);

#endif

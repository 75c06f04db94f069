/* data_dir.h - the directory of the embedded Redis, which one tallyd at a time may use.
 *
 * Layer: service.  Does not log.
 *
 * A missing directory is created for its owner alone (0700); its parent must exist.  The lock is a
 * flock on the file tallyd.lock.  So the lock ends with the process, however the process ends.  The
 * lock's descriptor is O_CLOEXEC, so a Redis that outlives tallyd does not hold the lock.  A
 * process that is about to become Redis holds the lock for a moment, and data_dir_open() waits for
 * that.  The file is never removed: two processes could then lock two files of one name.
 *
 * Thread safety: one thread at a time may use a struct.
 */
#ifndef SERVICE_REDIS_DATA_DIR_H
#define SERVICE_REDIS_DATA_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "storage/base/compiler.h"

struct data_dir {
    char path[PATH_MAX]; /* absolute, without symbolic links */
    int lock_fd;         /* -1: not held */
};

/* Create, resolve and lock @path.  False: nothing is held, and @error, cut to @room bytes, names
 * the fault. */
bool data_dir_open(struct data_dir *dir, const char *path, char *error, size_t room) MUST_CHECK;

/* Has the directory's disk too little room for a Redis to go on? */
bool data_dir_full(const struct data_dir *dir) MUST_CHECK;

/* Give the lock back, once everything has ended that writes into the directory. */
void data_dir_close(struct data_dir *dir);

#endif

/* data_dir.h - the directory of the embedded Redis, held by one tallyd at a time.
 *
 * Layer: service.  Does not log.
 * The directory is created for its owner alone (0700) if it is missing; its parent must exist.  The
 * lock is a flock on tallyd.lock, so it ends with the process however that ends, and its descriptor
 * is O_CLOEXEC: a Redis that outlives us does not hold it.  The file is never removed, which would
 * let two processes lock two files of one name.
 *
 * Thread safety: one struct, one thread.
 */
#ifndef SERVICE_REDIS_DATA_DIR_H
#define SERVICE_REDIS_DATA_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct data_dir {
    char path[PATH_MAX]; /* absolute, without symbolic links */
    int lock_fd;         /* -1: not held */
};

/* Create, resolve and lock @path.  False: @error, cut to @room bytes, names the fault; nothing is
 * held. */
bool data_dir_open(struct data_dir *dir, const char *path, char *error, size_t room)
    __attribute__((warn_unused_result));

/* Give the lock back; after everything that writes into the directory has ended. */
void data_dir_close(struct data_dir *dir);

#endif

/* aof_scan.h - is Redis's append-only file damaged elsewhere than at its end?
 *
 * Layer: service.  Does not log.
 *
 * redis-check-aof --fix cuts a file at its first fault, wherever that is: one bad sector would cost
 * all that was acknowledged since.  What a kill or a power cut leaves has a form of its own: the
 * beginning of a command, or of a transaction, at the end of the file.  Zeros may follow, where the
 * file had grown and its bytes were not written.
 *
 * Thread safety: any thread.  The function blocks until the file has been read.
 */
#ifndef SERVICE_REDIS_AOF_SCAN_H
#define SERVICE_REDIS_AOF_SCAN_H

#include <stdint.h>

#include "storage/base/compiler.h"

enum aof_state {
    AOF_WHOLE,
    AOF_UNFINISHED, /* the file's end may be missing: redis-check-aof finds out where to cut */
    AOF_DAMAGED,    /* the fault is at byte *ret_at */
    AOF_UNREADABLE, /* errno says why */
};

/* The state of the file @path, which holds commands as Redis writes them. */
enum aof_state aof_scan(const char *path, int64_t *ret_at) MUST_CHECK;

#endif

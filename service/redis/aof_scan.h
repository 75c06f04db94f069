/* aof_scan.h - is Redis's append-only file damaged elsewhere than at its end?
 *
 * Layer: service.  Does not log.
 *
 * redis-check-aof --fix cuts a file at its first fault, wherever that is: one bad sector would take
 * with it all that was acknowledged since.  What a kill or a power cut leaves is told from that by
 * its form.  It is the beginning of a command, or of a transaction, at the end of the file; zeros
 * may follow, where the file had grown and its bytes were not written.
 *
 * Thread safety: any thread.  The function blocks until the file has been read.
 */
#ifndef SERVICE_REDIS_AOF_SCAN_H
#define SERVICE_REDIS_AOF_SCAN_H

#include <stdint.h>

#include "storage/base/compiler.h"

enum aof_state {
    AOF_WHOLE,
    AOF_UNFINISHED, /* its end may be missing: redis-check-aof finds out where to cut */
    AOF_DAMAGED,    /* at byte *ret_at */
    AOF_UNREADABLE, /* see errno */
};

/* The state of the file @path, commands as Redis writes them. */
enum aof_state aof_scan(const char *path, int64_t *ret_at) MUST_CHECK;

#endif

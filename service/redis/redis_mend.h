/* redis_mend.h - take half a transaction away from the end of Redis's append-only file.
 *
 * Layer: service.  Does not log.
 *
 * A kill in the middle of a write can leave MULTI and some of its commands, with the last command
 * cut off.  Redis 7.0 runs none of these at its next start.  But it cuts the file only behind the
 * last whole command, and goes on writing there.  At the start after that, Redis runs the remains
 * together with the first transaction written since (valkey-io/valkey#4342).  A fold of which half
 * had remained, and which was done again, would be counted once more.
 *
 * redis-check-aof cuts in front of the MULTI, so redis_mend() runs redis-check-aof before a start.
 * That program is the server's own binary, by another name.  It would cut at a fault in the middle
 * of the file, too, and throw away all that follows.  So the file is looked at before (aof_scan.h).
 *
 * A manifest that names no file, or cannot be read, is damaged: redis-check-aof would take the
 * manifest for commands, and cut them all.  Where nothing is to be cut, redis-check-aof checks only
 * the base, which Redis wrote in one piece, and does not run if there is no base.
 *
 * Thread safety: any thread.  The function blocks until the files have been read, which takes less
 * time than Redis takes to load them.
 */
#ifndef SERVICE_REDIS_REDIS_MEND_H
#define SERVICE_REDIS_REDIS_MEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"

/* Mend the file in @dir, an absolute path, with the binary @server, whose output goes to @log.  A
 * missing file is fine.  *ret_cut: so many bytes were taken away.  False: the file cannot be read
 * or mended, or the binary cannot be run; @error, cut to @room bytes, says which. */
bool redis_mend(const char *dir, const char *server, const char *log, int64_t *ret_cut, char *error,
    size_t room) MUST_CHECK;

#endif

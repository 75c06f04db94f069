/* redis_mend.h - take half a transaction away from the end of Redis's append-only file.
 *
 * Layer: service.  Does not log.
 *
 * A kill in the middle of a write can leave MULTI and some of its commands, the last one cut off.
 * Redis 7.0 loads none of them, but cuts the file behind the last whole one and goes on writing
 * there; the start after that runs what is left together with the first transaction written since
 * (valkey-io/valkey#4342).  Half a flush, which was sent again, would be counted once more.
 * redis-check-aof cuts in front of the MULTI, so it runs before every start.  It is the server's
 * own binary, by another name.
 *
 * Thread safety: any thread; blocks until the file has been read, which takes less than its loading
 * does.
 */
#ifndef SERVICE_REDIS_REDIS_MEND_H
#define SERVICE_REDIS_REDIS_MEND_H

#include <stdbool.h>
#include <stddef.h>

/* Mend the file in @dir (absolute), if there is one, with @server; what it says goes to @log.
 * False: @error says why not: damage in its middle, or the check cannot be run. */
bool redis_mend(const char *dir, const char *server, const char *log, char *error, size_t room)
    __attribute__((warn_unused_result));

#endif

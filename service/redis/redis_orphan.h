/* redis_orphan.h - end the redis-server that a killed tallyd left in a data directory.
 *
 * Layer: service.  Does not log.
 *
 * Two servers must never write one append-only file.  So this function runs before every start,
 * with the directory's lock held.  It finds an orphan through the file redis.pid, and through the
 * process that listens on the socket (SO_PEERCRED).  A process is signalled only if it has the
 * server's name and works in this very directory.  The signal goes through a pidfd that was taken
 * before both were checked, so a process that got the same pid meanwhile is never hit.
 *
 * Thread safety: any thread; blocks until the orphan has ended.
 */
#ifndef SERVICE_REDIS_REDIS_ORPHAN_H
#define SERVICE_REDIS_REDIS_ORPHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "storage/base/compiler.h"

struct orphan {
    pid_t pid;   /* 0: there was none */
    bool forced; /* SIGTERM did not end the orphan in time */
};

/* End the orphan that was started from @server in @dir, an absolute path, and wait for its end:
 * send SIGTERM, and SIGKILL after @patience_ms.  False: the orphan cannot be ended, or another
 * process answers on the socket; @error, cut to @room bytes, says which. */
bool redis_orphan_end(const char *dir, const char *server, int patience_ms, struct orphan *ret,
    char *error, size_t room) MUST_CHECK;

#endif

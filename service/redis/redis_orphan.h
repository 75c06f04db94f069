/* redis_orphan.h - end the redis-server that a killed tallyd left in a data directory.
 *
 * Layer: service.  Does not log.
 * Two servers must never write one append-only file, so this runs before every start of ours, with
 * the directory's lock held.  An orphan is found through redis.pid and through whoever listens on
 * the socket (SO_PEERCRED).  It is only signalled if its name is the server's and it works in this
 * very directory, and through a pidfd taken before that was checked: a pid that was reused
 * meanwhile is never hit.
 *
 * Thread safety: any thread; blocks until the orphan is gone.
 */
#ifndef SERVICE_REDIS_REDIS_ORPHAN_H
#define SERVICE_REDIS_REDIS_ORPHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct orphan {
    pid_t pid;   /* 0: there was none */
    bool forced; /* it did not end on SIGTERM in time */
};

/* End the orphan in @dir (absolute) that was started from @server and wait for its end: SIGTERM,
 * after @patience_ms SIGKILL.  False: @error says why the directory cannot be used now: somebody
 * answers on the socket who is no such orphan, or it cannot be ended. */
bool redis_orphan_end(const char *dir, const char *server, int patience_ms, struct orphan *ret,
    char *error, size_t room) __attribute__((warn_unused_result));

#endif

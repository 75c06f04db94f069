/* rewrite.h - Redis rewrites its append-only file each night.
 *
 * Layer: storage.  Belongs to the rollup's thread, of the process that leads.
 *
 * The file keeps each command as it came, so it is a diary of visits until it is rewritten.  A
 * rewrite leaves the counts alone, and no secret that has expired.
 */
#ifndef STORAGE_ROLLUP_REWRITE_H
#define STORAGE_ROLLUP_REWRITE_H

#include "storage/base/compiler.h"
#include "storage/core/session.h"

#define REWRITE_HOUR 3 /* of the day, UTC */

/* When the next rewrite is due, by what is known of the last one.  Zeroed: not known. */
struct aof_rewriter {
    int64_t due_s; /* of Redis's clock */
};

/* Begin a rewrite if one is due: the first one after REWRITE_HOUR of each day.  The day is kept in
 * Redis, so it is one rewrite a day whoever leads.  Nothing is done where Redis has no such file,
 * or tallyd is not to do so.  @session is connected.  False: it must be closed. */
bool aof_rewrite_look(
    struct aof_rewriter *rewriter, struct core *core, struct session *session) MUST_CHECK;

#endif

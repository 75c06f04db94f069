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

struct leadership;
struct sessions;

#define REWRITE_HOUR    3  /* of the day, UTC */
#define REWRITE_AGAIN_S 60 /* Redis refused: it makes a snapshot, or somebody began one by hand */

/* When the next rewrite is due, by what is known of the last one.  Zeroed: not known. */
struct aof_rewriter {
    int64_t due_s; /* of Redis's clock */
};

/* Begin a rewrite if one is due: the first one after REWRITE_HOUR of each day.  The day is kept in
 * Redis, so it is one rewrite a day whoever leads.  A day of the future, which a clock that was
 * ahead has left, says nothing.  Nothing is done where Redis has no such file, or tallyd is not to
 * do so.  @session is connected to the server of @partition, where the day is kept.  False: it must
 * be closed. */
bool aof_rewrite_look(struct aof_rewriter *rewriter, struct core *core, struct session *session,
    unsigned partition) MUST_CHECK;

/* The same at each server of a cluster, which has a file of its own, as long as this process leads.
 * @servers are the rollup's connections, one a server. */
void aof_rewrite_look_each(struct aof_rewriter *rewriter, struct core *core,
    struct sessions *servers, const struct leadership *leadership);

#endif

/* rewrite.h - have Redis rewrite its append-only file each night.
 *
 * Layer: storage.  Belongs to the rollup's thread of the process that leads.
 *
 * The file keeps each command as it came, so it is a diary of visits until it is rewritten.  After
 * a rewrite it has only the counts, and no secret that has expired.
 */
#ifndef STORAGE_ROLLUP_REWRITE_H
#define STORAGE_ROLLUP_REWRITE_H

#include "storage/base/compiler.h"
#include "storage/session/session.h"

struct leadership;
struct sessions;

#define REWRITE_HOUR    3  /* hour of the day, UTC */
#define REWRITE_AGAIN_S 60 /* Redis refused, as during a snapshot: it is asked again later */

/* When the next rewrite is due, by what is known of the last one.  Zeroed: not known. */
struct aof_rewriter {
    int64_t due_s; /* UTC seconds of Redis's clock */
};

/* Begin a rewrite if one is due: once a day, after REWRITE_HOUR.  The day of the last rewrite is
 * kept in Redis, so there is one rewrite a day, whichever process leads.  A day of the future,
 * which a clock that was ahead has left, is ignored.  Nothing is done if Redis has no such file, or
 * tallyd is configured not to.  @session is connected to the server of @partition, where the day is
 * kept.  False: @session must be closed. */
bool aof_rewrite_look(struct aof_rewriter *rewriter, struct core *core, struct session *session,
    unsigned partition) MUST_CHECK;

/* The same at each server of a cluster, as each has its own file, while this process leads.
 * @servers are the rollup's connections, one to each server. */
void aof_rewrite_look_each(struct aof_rewriter *rewriter, struct core *core,
    struct sessions *servers, const struct leadership *leadership);

#endif

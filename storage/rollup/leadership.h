/* leadership.h - this process's right to roll up, and commands that are sent only while it lasts.
 *
 * Layer: storage.  Belongs to the rollup's thread, which lends it to its workers during a turn.
 *
 * In a cluster a server may not have the partition any more (MOVED), or the partition's slot is
 * being moved (ASK, TRYAGAIN).  Then nothing was done, and the pass is tried again in a second,
 * until the move is over.
 *
 * One process at a time leads (lock/leader.h).  Before every step of a pass the process looks
 * whether it still leads, so that a long pass does not outlive the lease of the lock.
 */
#ifndef STORAGE_ROLLUP_LEADERSHIP_H
#define STORAGE_ROLLUP_LEADERSHIP_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/session/session.h"

#define PASS_GRACE_S 30 /* so long after an hour's end most late events have come */

struct leadership {
    int64_t fencing_token;
    int64_t grace_s; /* an hour is marked so long after its end: PASS_GRACE_S, or 0 on request */
    bool (*still_mine)(void *data);            /* does this process still lead? */
    void (*fenced)(void *data, int64_t token); /* a partition has seen the greater token @token */
    void *data;
};

/* How a pass, or one of its steps, ends. */
enum pass_result {
    PASS_DONE,    /* everything was done */
    PASS_NOTHING, /* nothing is due in this partition */
    PASS_VOID,    /* another process has changed the partition, or leads now: look again */
    PASS_LOST,    /* the connection must be closed */
    PASS_FENCED,  /* the partition has seen a greater fencing token */
    PASS_FAILED,  /* Redis refused a step: try again later */
};

/* Send the one command in @out, which is about @partition, and await its reply; unless this process
 * does not lead any more (PASS_VOID).  @out is emptied.  PASS_DONE: *ret is no error, and lives
 * until the next command. */
enum pass_result leadership_ask(const struct leadership *leadership, struct core *core,
    struct session *session, unsigned partition, struct buffer *out,
    const struct reply **ret) MUST_CHECK;

#endif

/* leadership.h - this process's right to roll up, and commands that are sent only while it lasts.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * In a cluster a server may not have the partition any more (MOVED), or its slot is being moved
 * (ASK, TRYAGAIN).  Nothing was done then, and the pass is tried again in a second, until the move
 * is over.
 *
 * One process at a time leads (lock/leader.h).  Before every step of a pass the process looks
 * whether it still does, so that a long pass does not outlive the lease of the lock.
 */
#ifndef STORAGE_ROLLUP_LEADERSHIP_H
#define STORAGE_ROLLUP_LEADERSHIP_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/core/session.h"

#define PASS_GRACE_S 30 /* after an hour's end most late events are in by then */

struct leadership {
    int64_t fencing_token;
    int64_t grace_s; /* after an hour's end, before it is marked: PASS_GRACE_S; 0 when asked for */
    bool (*still_mine)(void *data);
    void (*fenced)(void *data, int64_t token); /* a partition has seen this token, a greater one */
    void *data;
};

/* How a pass ends, and each of its steps. */
enum pass_result {
    PASS_DONE,    /* it was brought to its end */
    PASS_NOTHING, /* nothing is due in this partition */
    PASS_VOID,    /* another process moved the partition, or leads now: look again */
    PASS_LOST,    /* the connection is of no use any more */
    PASS_FENCED,  /* the partition has seen a greater fencing token */
    PASS_FAILED,  /* Redis refused a step: later */
};

/* Send the one command in @out, which is emptied and is about @partition, unless this process does
 * not lead any more; await its reply.  PASS_DONE: *ret is no error, and lives until the next
 * command. */
enum pass_result leadership_ask(const struct leadership *leadership, struct core *core,
    struct session *session, unsigned partition, struct buffer *out,
    const struct reply **ret) MUST_CHECK;

#endif

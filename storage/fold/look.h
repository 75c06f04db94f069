/* look.h - the first half of a transaction: WATCH the states, and read what the decision needs.
 *
 * Layer: storage.  Belongs to the thread of a lane (lanes.h).
 *
 * A look is one write:
 *
 *     WATCH of the states; HGETALL of the heads; TIME; what the shares ask; MULTI
 *
 * MULTI is answered before a command of the transaction is sent.  Were both sent together, a Redis
 * that refuses MULTI (BUSY, LOADING) and recovers a moment later would run the commands behind it
 * one by one: a cursor would move without its data.
 *
 * What a share asks in SHARE_MORE goes out behind the answers to the first questions, and what it
 * asks behind its decision in look_end(), step by step.  MULTI goes out with the last questions
 * that there are.
 */
#ifndef STORAGE_FOLD_LOOK_H
#define STORAGE_FOLD_LOOK_H

#include "storage/core/session.h"
#include "storage/fold/heads.h"
#include "storage/fold/share.h"

/* How counting has ended; the further down, the worse. */
enum fold_end {
    FOLD_DONE,
    FOLD_AGAIN, /* nothing was done: again, from the WATCH.  Never of a whole transaction */
    FOLD_ERR,   /* nothing was done, because of `err` */
    FOLD_STALE, /* nothing was done: read the entries of `log` from the stream, which mends it */
    FOLD_LOST,  /* the connection must be given up: done or not */
};
struct fold_result {
    enum fold_end end;
    enum storage_err err;
    uint32_t log; /* its number in the batch */
};

static inline struct fold_result fold_failed(enum storage_err err)
{
    return (struct fold_result){.end = FOLD_ERR, .err = err};
}

/* Cuts of one batch that are counted together.  The array stays until they are counted. */
struct fold_cuts {
    const struct cut *cuts;
    unsigned n;
};

/* Zeroed it is empty. */
struct look {
    struct share *shares[CUTS_MAX]; /* owned; by place in the cuts; made when needed */
    struct fold_cuts cuts;
    bool is_open;         /* MULTI was answered, and neither EXEC nor DISCARD was sent */
    int64_t now_ms;       /* Redis's clock */
    enum storage_err err; /* of an error reply, or memory is out: nothing was done */

    size_t n_questions[CUTS_MAX], n_replies;
    struct core *core;
    struct server *server; /* that answers */
    struct heads *heads;
    bool has_multi;       /* MULTI was written */
    enum share_step step; /* what was asked last.. */
    unsigned at;          /* ..whose answer comes next.. */
    size_t question;      /* ..and which */
};

void look_release(struct look *look);

/* Begin shares for @cuts of @batch, and have answered what goes before their decision.  @out is
 * empty.  @heads are replaced; of a cluster they stay. */
enum redis_status look_begin(struct look *look, struct session *session, struct fold_memory *memory,
    const struct batch *batch, struct fold_cuts cuts, struct buffer *out, int64_t deadline_ms,
    struct heads *heads) MUST_CHECK;

/* The shares are decided: have their last questions answered, and MULTI, unless it was answered.
 * @out is empty. */
enum redis_status look_end(
    struct look *look, struct session *session, struct buffer *out, int64_t deadline_ms) MUST_CHECK;

/* By the answers: do all shares go on (share_fits())? */
bool look_fits(struct look *look) MUST_CHECK;

/* End a look that comes to no EXEC; its answers were read.  False: the connection is lost. */
bool look_discard(
    struct look *look, struct session *session, int64_t deadline_ms, struct buffer *out) MUST_CHECK;

/* An error reply.  *err becomes the first one's.  False: the connection must be given up. */
bool fold_note_error(struct core *core, const struct reply *reply, enum storage_err *err);

/* The same, of @server about a transaction of @partition: also what it says of the server, and of a
 * slot that is half moved, is noted. */
bool fold_refused(struct core *core, struct server *server, unsigned partition,
    const struct reply *reply, enum storage_err *err);

#endif

/* transaction_state.h - the insides of a transaction.
 *
 * Layer: storage, private to transaction.c (its course), look.c (what is read) and carry_out.c
 * (the commands that come of it, and their answers).
 */
#ifndef STORAGE_FOLD_TRANSACTION_STATE_H
#define STORAGE_FOLD_TRANSACTION_STATE_H

#include "storage/schema/heads.h"
#include "storage/fold/pace.h"
#include "storage/fold/result.h"
#include "storage/fold/share.h"
#include "storage/known/memory.h"
#include "storage/session/session.h"

struct seen_fold;

#define OUT_KEPT ((size_t)256 * 1024) /* a buffer keeps so many bytes for the next use */

struct transaction {
    struct core *core;
    struct seen_fold *seen_fold;
    struct fold_memory memory;
    struct pace pace;
    struct share *shares[CUTS_MAX]; /* owned; by place in the cuts; made when needed */
    struct buffer out;              /* commands that are sent next */
    struct buffer due;              /* keys for seen_fold_due() */
    struct buffer commands;         /* all that goes behind MULTI, with the EXEC */
    size_t counts_from, counts_end; /* the bytes of `commands` between the two TIME */
    struct buffer words;            /* the same commands as arguments of fold.lua */

    /* The arguments of transaction_run(). */
    struct session *session;
    int64_t deadline_ms;
    const struct batch *batch;
    struct fold_cuts cuts;
    struct heads *heads;

    /* What is read. */
    bool has_multi;               /* MULTI was written */
    bool is_open;                 /* MULTI was answered, and neither EXEC nor DISCARD was sent */
    int64_t now_ms;               /* Redis's clock, UTC */
    enum storage_err err;         /* an error reply came, so nothing is done */
    enum share_step step;         /* what was asked last */
    size_t n_questions[CUTS_MAX]; /* each share has asked so many in this step */
    size_t n_replies;             /* the commands of this step get so many replies */
    unsigned next_share;          /* the next answer belongs to this share */
    size_t next_question;         /* the next answer is that to this question of the share */

    /* What is written. */
    size_t n_commands[CUTS_MAX];     /* each share has so many commands; 0: nothing to count */
    bool counts;                     /* a share has something to count */
    size_t n_all;                    /* commands of all shares, and the trim */
    enum log_fate fates[BATCH_LOGS]; /* of the batch's logs, by their heads */
    struct fold_result found;        /* what the answers to the commands say */
};

/* Begin shares for the cuts, and ask Redis what they need for their decision. */
struct fold_result transaction_look(struct transaction *tx) MUST_CHECK;

/* The shares are decided: ask Redis their last questions, and MULTI, unless MULTI was answered.
 * FOLD_AGAIN: by the answers a share has to begin again (share_fits()). */
struct fold_result transaction_look_on(struct transaction *tx) MUST_CHECK;

/* End a look that comes to no EXEC, and whose answers were read: DISCARD, or UNWATCH.  False: the
 * connection is lost. */
bool transaction_discard(struct transaction *tx) MUST_CHECK;

/* Have the commands of the transaction carried out.  @trim: see transaction_run().  FOLD_AGAIN: a
 * state was changed since the WATCH, and nothing was done. */
struct fold_result transaction_carry_out(struct transaction *tx, int trim) MUST_CHECK;

#endif

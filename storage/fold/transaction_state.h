/* transaction_state.h - the insides of a transaction.
 *
 * Layer: storage, private to transaction.c (its course), look.c (what is read) and carry_out.c
 * (the commands that come of it, and their answers).
 */
#ifndef STORAGE_FOLD_TRANSACTION_STATE_H
#define STORAGE_FOLD_TRANSACTION_STATE_H

#include "storage/core/session.h"
#include "storage/fold/heads.h"
#include "storage/fold/pace.h"
#include "storage/fold/result.h"
#include "storage/fold/share.h"
#include "storage/known/memory.h"

struct seen_fold;

#define OUT_KEPT ((size_t)256 * 1024)

struct transaction {
    struct core *core;
    struct seen_fold *seen_fold;
    struct fold_memory memory;
    struct pace pace;
    struct share *shares[CUTS_MAX]; /* owned; by place in the cuts; made when needed */
    struct buffer out, due;
    struct buffer commands;         /* of the transaction, behind MULTI.. */
    size_t counts_from, counts_end; /* ..and the bytes of them that count something */
    struct buffer words;            /* those as arguments of fold.lua */

    /* Of the run at hand. */
    struct session *session;
    int64_t deadline_ms;
    const struct batch *batch;
    struct fold_cuts cuts;
    struct heads *heads;

    /* What is read. */
    bool has_multi;       /* MULTI was written.. */
    bool is_open;         /* ..and answered, and neither EXEC nor DISCARD was sent */
    int64_t now_ms;       /* Redis's clock */
    enum storage_err err; /* of an error reply: nothing was done */
    enum share_step step; /* what was asked last.. */
    size_t n_questions[CUTS_MAX], n_replies;
    unsigned at;     /* ..whose answer comes next.. */
    size_t question; /* ..and which */

    /* What is written. */
    size_t n_commands[CUTS_MAX]; /* 0: nothing to count.. */
    bool counts;                 /* ..in some shares there is something */
    size_t n_all;                /* commands of all shares, and the trim */
    enum log_fate fates[BATCH_LOGS];
    struct fold_result found; /* by the answers to the commands */
};

/* Begin shares for the cuts, and have answered what goes before their decision. */
struct fold_result transaction_look(struct transaction *tx) MUST_CHECK;

/* The shares are decided: have their last questions answered, and MULTI, unless it was answered.
 * FOLD_AGAIN: by the answers a share does not go on (share_fits()). */
struct fold_result transaction_look_on(struct transaction *tx) MUST_CHECK;

/* End a look that comes to no EXEC; its answers were read.  False: the connection is lost. */
bool transaction_discard(struct transaction *tx) MUST_CHECK;

/* Have the commands of the transaction carried out.  FOLD_AGAIN: a state was changed meanwhile. */
struct fold_result transaction_carry_out(struct transaction *tx, int trim) MUST_CHECK;

#endif

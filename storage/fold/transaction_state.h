/* transaction_state.h - the insides of a transaction.
 *
 * Layer: storage, private to transaction.c (what is read, and decided) and carry_out.c (the
 * commands that come of it, and their answers).
 */
#ifndef STORAGE_FOLD_TRANSACTION_STATE_H
#define STORAGE_FOLD_TRANSACTION_STATE_H

#include "storage/fold/look.h"
#include "storage/fold/pace.h"
#include "storage/known/memory.h"

struct seen_fold;

#define OUT_KEPT ((size_t)256 * 1024)

struct transaction {
    struct core *core;
    struct seen_fold *seen_fold;
    struct fold_memory memory;
    struct pace pace;
    struct look look;
    struct buffer out, due;
    struct buffer commands;         /* of the transaction, behind MULTI.. */
    size_t counts_from, counts_end; /* ..and the bytes of them that count something */
    struct buffer words;            /* those as arguments of fold.lua */

    /* Of the run at hand. */
    struct session *session;
    int64_t deadline_ms;
    const struct batch *batch;
    struct heads *heads;
    size_t n_commands[CUTS_MAX]; /* 0: nothing to count.. */
    bool counts;                 /* ..in some shares there is something */
    size_t n_all;                /* commands of all shares */
    enum log_fate fates[BATCH_LOGS];
    struct fold_result found; /* by the answers to the commands */
};

/* Have the commands of the transaction carried out.  FOLD_AGAIN: a state was changed meanwhile. */
struct fold_result transaction_carry_out(struct transaction *tx) MUST_CHECK;

#endif

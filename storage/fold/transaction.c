#include "storage/fold/transaction.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/random_id.h"
#include "storage/fold/transaction_state.h"

struct transaction *transaction_new(
    struct core *core, struct seen_fold *seen_fold, struct shared_memory *shared)
{
    struct transaction *tx = calloc(1, sizeof(*tx));
    if (tx != NULL) {
        tx->core = core;
        tx->seen_fold = seen_fold;
        tx->memory.shared = shared;
        random_id(tx->memory.id, sizeof(tx->memory.id));
    }
    return tx;
}

void transaction_free(struct transaction *tx)
{
    if (tx == NULL) {
        return;
    }
    transaction_forget(tx);
    fold_memory_release(&tx->memory);
    look_release(&tx->looks[0]);
    look_release(&tx->looks[1]);
    buffer_release(&tx->out);
    buffer_release(&tx->due);
    buffer_release(&tx->commands);
    buffer_release(&tx->words);
    free(tx);
}

void transaction_forget(struct transaction *tx)
{
    fold_memory_forget(&tx->memory);
    tx->looks[0].is_sent = tx->looks[1].is_sent = false;
    tx->learns = false;
}

uint32_t transaction_limit_us(const struct transaction *tx, const struct batch *batch)
{
    return pace_limit_us(&tx->pace, batch_has_many(batch) ? PACE_GOAL_SHORT_US : PACE_GOAL_US);
}

const struct known_sketches *transaction_sketches(const struct transaction *tx)
{
    return &tx->memory.sketches;
}

/* ---- the look ---- */

/* Put what the transaction before has done into the memory. */
static void transaction_learn(struct transaction *tx)
{
    const struct look *look = the_other(tx);
    for (unsigned i = 0; tx->learns && i < look->cuts.n; i++) {
        share_learn(look->shares[i]);
    }
    tx->learns = false;
}

/* A look's answers came, or did not.  False: see tx->found. */
static bool has_looked(struct transaction *tx, enum redis_status status)
{
    const struct look *look = at_hand(tx);
    tx->found.lost = status != REDIS_OK_STATUS || look->is_lost;
    tx->found.err = look->err;
    return !tx->found.lost && look->err == STORAGE_OK;
}

/* Watch, and read all that is needed to decide, unless that went out before.  False: see
 * tx->found. */
static bool transaction_look(struct transaction *tx, struct fold_cuts cuts)
{
    struct look *look = at_hand(tx);
    buffer_clear(&tx->out, OUT_KEPT);
    if (!look->is_sent) {
        transaction_learn(tx);
        if (!look_write(look, tx->core, &tx->memory, tx->batch, cuts, &tx->out)) {
            tx->found.err = STORAGE_NOMEM;
            return false;
        }
    }
    return has_looked(tx, look_read(look, tx->session, &tx->out, tx->deadline_ms, tx->heads));
}

/* What counters have is asked once the shares are decided.  *ret_again: begin again from the WATCH.
 * False: see tx->found. */
static bool end_look(struct transaction *tx, bool *ret_again)
{
    buffer_clear(&tx->out, OUT_KEPT);
    return has_looked(tx, look_end(at_hand(tx), tx->session, &tx->out, tx->deadline_ms, ret_again));
}

/* False: the connection is lost. */
static bool transaction_discard(struct transaction *tx, struct look *look)
{
    buffer_clear(&tx->out, OUT_KEPT);
    return look_discard(look, tx->session, tx->deadline_ms, &tx->out);
}

bool transaction_drop_ahead(struct transaction *tx)
{
    struct look *look = the_other(tx);
    if (!look->is_sent) {
        return true;
    }
    buffer_clear(&tx->out, OUT_KEPT);
    return look_read(look, tx->session, &tx->out, tx->deadline_ms, tx->heads) == REDIS_OK_STATUS &&
           transaction_discard(tx, look);
}

/* ---- deciding ---- */

/* Do the entries of log @log hold by what its head says? */
static bool transaction_agrees(const struct batch *batch, uint32_t log, const struct log_head *head)
{
    if (head->n < batch->logs[log].to) {
        return false;
    }
    for (size_t i = 0; batch->logs[log].in_memory && i < batch->n_entries; i++) {
        if (batch->entries[i].log == log && strcmp(batch->entries[i].entry->era, head->era) != 0) {
            return false;
        }
    }
    return true;
}

/* False: the batch is stale for *ret_log. */
static bool judge_logs(struct transaction *tx, uint32_t *ret_log)
{
    for (uint32_t l = 0; l < tx->batch->n_logs; l++) {
        const struct log_head *head = heads_find(tx->heads, tx->batch->logs[l].id);
        tx->fates[l] = head == NULL ? LOG_GONE : LOG_COUNTS;
        if (head != NULL && !transaction_agrees(tx->batch, l, head)) {
            *ret_log = l;
            return false;
        }
    }
    return true;
}

/* Ask the shares.  *ret_any: some count something; *ret_again: begin again from the WATCH. */
static enum fold_end transaction_decide(struct transaction *tx, bool *ret_again, bool *ret_any,
    uint32_t *ret_log, enum storage_err *ret_err)
{
    const struct look *look = at_hand(tx);
    *ret_again = *ret_any = false;
    if (!judge_logs(tx, ret_log)) {
        return FOLD_STALE;
    }
    for (unsigned i = 0; i < look->cuts.n; i++) {
        enum share_look found = share_decide(look->shares[i], tx->fates, look->now_ms, ret_log);
        tx->n_commands[i] = 0;
        core_note_state(tx->core, look->cuts.cuts[i].partition, found == SHARE_EMPTIED);
        switch (found) {
        case SHARE_FOLDS:
            tx->n_commands[i] = 1; /* or more: when they are written */
            *ret_any = true;
            break;
        case SHARE_NOTHING:
            break;
        case SHARE_AGAIN:
            *ret_again = true;
            break;
        case SHARE_STALE:
            return FOLD_STALE;
        case SHARE_CONFIG:
            atomic_store(&tx->core->settings_differ, true);
            *ret_err = STORAGE_CONFIG;
            return FOLD_ERR;
        case SHARE_EMPTIED:
            if (tx->core->is_spread) { /* it is not made anew: see core_state_lost() */
                *ret_err = STORAGE_STATE_LOST;
                return FOLD_ERR;
            }
            atomic_store(&tx->core->emptied, true);
            return FOLD_LOST;
        case SHARE_NOMEM:
            *ret_err = STORAGE_NOMEM;
            return FOLD_ERR;
        }
    }
    return FOLD_DONE;
}

/* ---- attempts ---- */

/* The look has failed. */
static enum fold_end end_in_error(struct transaction *tx, enum storage_err *ret_err)
{
    *ret_err = tx->found.err;
    return tx->found.lost || !transaction_discard(tx, at_hand(tx)) ? FOLD_LOST : FOLD_ERR;
}

/* One attempt.  *ret_again: another one. */
static enum fold_end transaction_attempt(struct transaction *tx, struct fold_cuts cuts,
    struct fold_cuts next, int trim, bool *ret_again, uint32_t *ret_log, enum storage_err *ret_err)
{
    bool any;
    *ret_again = false;
    tx->found = (struct findings){.err = STORAGE_OK};
    if (!transaction_look(tx, cuts)) {
        return end_in_error(tx, ret_err);
    }
    if (tx->core->is_spread && monotonic_ms() - tx->heads->asked_ms > HEADS_AGE_MS) {
        *ret_err = STORAGE_BEHIND; /* the round reads them again */
        return transaction_discard(tx, at_hand(tx)) ? FOLD_ERR : FOLD_LOST;
    }
    enum fold_end end = transaction_decide(tx, ret_again, &any, ret_log, ret_err);
    if (end != FOLD_DONE || *ret_again || !any) {
        return transaction_discard(tx, at_hand(tx)) ? end : FOLD_LOST;
    }
    if (!end_look(tx, ret_again)) {
        return end_in_error(tx, ret_err);
    }
    if (*ret_again) {
        return transaction_discard(tx, at_hand(tx)) ? FOLD_DONE : FOLD_LOST;
    }
    transaction_learn(tx); /* no share rests on the memory now */
    return transaction_carry_out(tx, next, trim, ret_again, ret_err);
}

enum fold_end transaction_run(struct transaction *tx, struct session *session,
    const struct batch *batch, struct fold_cuts cuts, struct fold_cuts next, int trim,
    int64_t deadline_ms, struct heads *heads, uint32_t *ret_log, enum storage_err *ret_err)
{
    bool again;
    enum fold_end end;
    tx->session = session;
    tx->deadline_ms = deadline_ms;
    tx->batch = batch;
    tx->heads = heads;
    do {
        end = transaction_attempt(tx, cuts, next, trim, &again, ret_log, ret_err);
        if (again) {
            atomic_fetch_add(&tx->core->stats.fold_again, 1);
            end = FOLD_LOST; /* if it is too late to begin again */
        }
    } while (again && monotonic_ms() < deadline_ms);
    if (end == FOLD_LOST) {
        transaction_forget(tx);
    }
    tx->learns = end == FOLD_DONE && tx->found.done;
    tx->side = 1 - tx->side;
    return end;
}

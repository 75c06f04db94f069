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
    fold_memory_release(&tx->memory);
    for (unsigned i = 0; i < CUTS_MAX; i++) {
        share_free(tx->shares[i]);
    }
    buffer_release(&tx->out);
    buffer_release(&tx->due);
    buffer_release(&tx->commands);
    buffer_release(&tx->words);
    free(tx);
}

void transaction_forget(struct transaction *tx)
{
    fold_memory_forget(&tx->memory);
}

const struct pace *transaction_pace(const struct transaction *tx)
{
    return &tx->pace;
}

/* ---- deciding ---- */

/* Decide by the heads which logs count.  FOLD_STALE: the batch does not agree with a head. */
static struct fold_result judge_logs(struct transaction *tx)
{
    const struct batch *batch = tx->batch;
    const struct log_head *heads[BATCH_LOGS] = {NULL};
    for (uint32_t l = 0; l < batch->n_logs; l++) {
        heads[l] = heads_find(tx->heads, batch->logs[l].id, l);
        tx->fates[l] = heads[l] == NULL ? LOG_GONE : LOG_COUNTS;
        if (heads[l] != NULL && heads[l]->n < batch->logs[l].to) {
            return (struct fold_result){.end = FOLD_STALE, .log = l};
        }
    }
    for (size_t i = 0; i < batch->n_entries; i++) {
        const struct log_head *head = heads[batch->entries[i].log];
        const char *era = batch->entries[i].entry->era; /* "": the entry is from the stream */
        if (head != NULL && era[0] != '\0' && strcmp(era, head->era) != 0) {
            return (struct fold_result){.end = FOLD_STALE, .log = batch->entries[i].log};
        }
    }
    return (struct fold_result){.end = FOLD_DONE};
}

/* Have the shares decide.  tx->counts becomes true if one has something to count. */
static struct fold_result transaction_decide(struct transaction *tx)
{
    struct fold_result result = judge_logs(tx);
    for (unsigned i = 0; result.end <= FOLD_AGAIN && i < tx->cuts.n; i++) {
        enum share_look found = share_decide(tx->shares[i], tx->fates, tx->now_ms, &result.log);
        tx->n_commands[i] = found == SHARE_FOLDS; /* how many is known when they are written */
        core_note_state(tx->core, tx->cuts.cuts[i].partition, found == SHARE_EMPTIED);
        switch (found) {
        case SHARE_FOLDS:
            tx->counts = true;
            break;
        case SHARE_NOTHING:
            break;
        case SHARE_AGAIN:
            result.end = FOLD_AGAIN;
            break;
        case SHARE_STALE:
            result.end = FOLD_STALE;
            break;
        case SHARE_CONFIG:
            atomic_store(&tx->core->settings_differ, true);
            return fold_failed(STORAGE_CONFIG);
        case SHARE_EMPTIED:
            if (tx->core->is_spread) { /* a state is not made anew: see core_state_lost() */
                return fold_failed(STORAGE_STATE_LOST);
            }
            atomic_store(&tx->core->emptied, true);
            return (struct fold_result){.end = FOLD_LOST};
        case SHARE_NOMEM:
            return fold_failed(STORAGE_NOMEM);
        }
    }
    return result;
}

/* ---- attempts ---- */

/* May the transaction rest on its heads?  Where they are too old the round reads them again. */
static bool are_heads_young(const struct transaction *tx)
{
    return !tx->core->is_spread || monotonic_ms() - tx->heads->asked_ms <= HEADS_AGE_MS;
}

static struct fold_result transaction_attempt(struct transaction *tx, int trim)
{
    tx->counts = false;
    struct fold_result result = transaction_look(tx);
    if (result.end == FOLD_DONE) {
        result = are_heads_young(tx) ? transaction_decide(tx) : fold_failed(STORAGE_BEHIND);
    }
    if (result.end == FOLD_DONE && tx->counts) {
        result = transaction_look_on(tx);
    }
    if (result.end == FOLD_DONE && tx->counts) {
        return transaction_carry_out(tx, trim);
    }
    if (result.end == FOLD_LOST || !transaction_discard(tx)) {
        result.end = FOLD_LOST;
    }
    return result;
}

struct fold_result transaction_run(struct transaction *tx, struct session *session,
    const struct batch *batch, struct fold_cuts cuts, int trim, int64_t deadline_ms,
    struct heads *heads)
{
    struct fold_result result;
    tx->session = session;
    tx->deadline_ms = deadline_ms;
    tx->batch = batch;
    tx->cuts = cuts;
    tx->heads = heads;
    while ((result = transaction_attempt(tx, trim)).end == FOLD_AGAIN) {
        atomic_fetch_add(&tx->core->stats.fold_again, 1);
        if (monotonic_ms() >= deadline_ms) {
            result.end = FOLD_LOST;
            break;
        }
    }
    return result;
}

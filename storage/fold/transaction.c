#include "storage/fold/transaction.h"

#include <sodium.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/core/reply_fault.h"
#include "storage/redis/command_words.h"
#include "storage/fold/streams.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/seen/fold.h"

#define OUT_KEPT ((size_t)256 * 1024)

/* What one EXEC found. */
struct findings {
    bool lost;
    enum storage_err err;
    bool is_void; /* EXEC did nothing: a state was changed */
    bool done;
};

struct transaction {
    struct core *core;
    struct seen_fold *seen_fold;
    struct fold_memory memory;
    struct pace pace;
    struct look looks[2]; /* of the transaction at hand, and ahead of the next one */
    unsigned side;        /* the one at hand */
    bool learns;          /* what the other one's shares did is not in the memory yet */
    struct buffer out, due;
    struct buffer commands; /* of the transaction, between MULTI and EXEC */
    struct buffer words;    /* the same as arguments of fold.lua */

    /* Of the run at hand. */
    struct session *session;
    int64_t deadline_ms;
    const struct batch *batch;
    struct heads *heads;
    size_t n_commands[CUTS_MAX]; /* 0: nothing to count */
    size_t n_all;                /* commands of all shares, and the trim */
    enum log_fate fates[BATCH_LOGS];
    struct findings found;
};

static struct look *at_hand(struct transaction *tx)
{
    return &tx->looks[tx->side];
}

static struct look *the_other(struct transaction *tx)
{
    return &tx->looks[1 - tx->side];
}

struct transaction *transaction_new(
    struct core *core, struct seen_fold *seen_fold, struct shared_memory *shared)
{
    struct transaction *tx = calloc(1, sizeof(*tx));
    unsigned char bytes[16];
    if (tx != NULL) {
        tx->core = core;
        tx->seen_fold = seen_fold;
        tx->memory.shared = shared;
        randombytes_buf(bytes, sizeof(bytes));
        sodium_bin2hex(tx->memory.id, sizeof(tx->memory.id), bytes, sizeof(bytes));
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

/* ---- the look ---- */

/* Put what the transaction before has done into the memory. */
static void learn(struct transaction *tx)
{
    const struct look *look = the_other(tx);
    for (unsigned i = 0; tx->learns && i < look->cuts.n; i++) {
        share_learn(look->shares[i]);
    }
    tx->learns = false;
}

/* Watch, and read all that is needed to decide, unless that went out before.  False: see
 * tx->found. */
static bool look(struct transaction *tx, struct fold_cuts cuts)
{
    struct look *look = at_hand(tx);
    buffer_clear(&tx->out, OUT_KEPT);
    if (!look->is_sent) {
        learn(tx);
        if (!look_write(look, tx->core, &tx->memory, tx->batch, cuts, &tx->out)) {
            tx->found.err = STORAGE_NOMEM;
            return false;
        }
    }
    enum redis_status status = look_read(look, tx->session, &tx->out, tx->deadline_ms, tx->heads);
    tx->found.lost = status != REDIS_OK_STATUS || look->is_lost;
    tx->found.err = look->err;
    return !tx->found.lost && look->err == STORAGE_OK;
}

/* False: the connection is lost. */
static bool discard(struct transaction *tx, struct look *look)
{
    buffer_clear(&tx->out, OUT_KEPT);
    return look_discard(look, tx->session, tx->deadline_ms, &tx->out);
}

/* The transaction at hand was not carried out: what was read ahead is of no use.  False: the
 * connection is lost. */
static bool drop_ahead(struct transaction *tx)
{
    struct look *look = the_other(tx);
    if (!look->is_sent) {
        return true;
    }
    buffer_clear(&tx->out, OUT_KEPT);
    return look_read(look, tx->session, &tx->out, tx->deadline_ms, tx->heads) == REDIS_OK_STATUS &&
           discard(tx, look);
}

/* ---- deciding ---- */

/* Do the entries of log @log hold by what its head says? */
static bool agrees(const struct batch *batch, uint32_t log, const struct log_head *head)
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
        if (head != NULL && !agrees(tx->batch, l, head)) {
            *ret_log = l;
            return false;
        }
    }
    return true;
}

/* Ask the shares.  *ret_any: some count something; *ret_again: begin again from the WATCH. */
static enum fold_end decide(struct transaction *tx, bool *ret_again, bool *ret_any,
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
                *ret_err = STORAGE_DOWN;
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

/* ---- MULTI .. EXEC ---- */

/* The answers to the commands. */
static bool take_done(struct transaction *tx, const struct reply *replies, size_t n)
{
    size_t at = 0;
    if (n != tx->n_all) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (replies[i].type == REPLY_ERROR) { /* a key of another type: never by us */
            atomic_fetch_add(&tx->core->stats.redis_errors, 1);
            core_notice(tx->core, STORAGE_REFUSING, replies[i].text.p);
        }
    }
    const struct look *look = at_hand(tx);
    for (unsigned i = 0; i < look->cuts.n; i++) {
        core_note_open_slot(tx->core, look->cuts.cuts[i].partition, false);
        if (tx->n_commands[i] > 0) {
            buffer_clear(&tx->due, OUT_KEPT);
            share_done(look->shares[i], replies + at, &tx->due);
            struct slice due = {tx->due.p, tx->due.n};
            seen_fold_due(tx->seen_fold, look->cuts.cuts[i].partition, due);
            at += tx->n_commands[i];
        }
    }
    tx->found.done = true;
    return true;
}

/* How long the transaction took, by the TIME at its ends. */
static void learn_pace(struct transaction *tx, const struct reply *first, const struct reply *last)
{
    uint64_t us = 0;
    const struct look *look = at_hand(tx);
    for (unsigned i = 0; i < look->cuts.n; i++) {
        us += tx->n_commands[i] > 0 ? look->cuts.cuts[i].us : 0;
    }
    pace_learn(&tx->pace, us, reply_time_us(last) - reply_time_us(first));
}

static void refused(struct transaction *tx, const struct reply *reply)
{
    unsigned partition = at_hand(tx)->cuts.cuts[0].partition;
    fold_note_redirect(tx->core, partition, reply);
    server_refused(tx->core, &tx->session->server, partition, reply);
}

/* Behind MULTI: TIME, the commands, TIME, EXEC. */
static bool take_exec(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    if (reply->type == REPLY_ERROR) {
        refused(tx, reply);
        tx->found.lost = !fold_note_error(tx->core, reply, &tx->found.err);
        return !tx->found.lost;
    }
    if (i < tx->n_all + 2) { /* QUEUED */
        return true;
    }
    tx->found.is_void = reply->type == REPLY_NIL;
    if (tx->found.is_void) {
        return true;
    }
    if (reply->type != REPLY_ARRAY || reply->n != tx->n_all + 2) {
        return false;
    }
    learn_pace(tx, &reply->items[0], &reply->items[reply->n - 1]);
    return take_done(tx, reply->items + 1, tx->n_all);
}

/* The commands of all shares, and the trim. */
static void write_commands(struct transaction *tx, int trim)
{
    const struct look *look = at_hand(tx);
    buffer_clear(&tx->commands, OUT_KEPT);
    tx->n_all = 0;
    for (unsigned i = 0; i < look->cuts.n; i++) {
        if (tx->n_commands[i] > 0) {
            tx->n_commands[i] = share_write_commands(look->shares[i], &tx->commands);
            tx->n_all += tx->n_commands[i];
        }
    }
    if (trim >= 0 && tx->fates[trim] == LOG_COUNTS) {
        const struct batch_log *log = &tx->batch->logs[trim];
        stream_write_trim(tx->core, log->id, log->to, &tx->commands);
        tx->n_all++;
    }
}

/* Send the commands at hand.  Behind EXEC goes the look for @next, which is written while Redis
 * carries the commands out. */
static enum redis_status execute(struct transaction *tx, struct fold_cuts next)
{
    struct redis *redis = tx->session->redis;
    bool left;
    buffer_clear(&tx->out, OUT_KEPT);
    resp_command(&tx->out, "TIME", NULL);
    buffer_append(&tx->out, tx->commands.p, tx->commands.n);
    resp_command(&tx->out, "TIME", NULL);
    resp_command(&tx->out, "EXEC", NULL);
    tx->out.failed = tx->out.failed || tx->commands.failed;
    at_hand(tx)->is_open = false;
    if (!redis_queue(redis, &tx->out)) {
        return REDIS_LOST; /* out of memory */
    }
    (void)redis_send(redis, &left);
    buffer_clear(&tx->out, OUT_KEPT);
    if (next.n > 0 &&
        !look_write(the_other(tx), tx->core, &tx->memory, tx->batch, next, &tx->out)) {
        return REDIS_LOST;
    }
    return redis_ask_all(redis, &tx->out, tx->n_all + 3, tx->deadline_ms, take_exec, tx);
}

/* ---- where memory is full ---- */

static size_t write_expected(struct transaction *tx, struct buffer *out)
{
    size_t n_logs = 0;
    size_t n = 1;
    bool has_heads = !tx->core->is_spread;
    for (size_t l = 0; has_heads && l < tx->batch->n_logs; l++) {
        n_logs += tx->fates[l] == LOG_COUNTS;
    }
    resp_decimal(out, (int64_t)n_logs);
    for (size_t l = 0; has_heads && l < tx->batch->n_logs; l++) {
        if (tx->fates[l] == LOG_COUNTS) {
            resp_text(out, tx->batch->logs[l].id);
        }
    }
    for (unsigned i = 0; i < at_hand(tx)->cuts.n; i++) {
        n += share_write_expected(at_hand(tx)->shares[i], out);
    }
    return n + n_logs;
}

static bool take_script(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    (void)i;
    if (reply->type == REPLY_ERROR) {
        refused(tx, reply);
        tx->found.lost = !fold_note_error(tx->core, reply, &tx->found.err);
        return !tx->found.lost;
    }
    tx->found.is_void = reply->type == REPLY_INTEGER;
    return tx->found.is_void ||
           (reply->type == REPLY_ARRAY && take_done(tx, reply->items, reply->n));
}

/* What has been acknowledged is counted also beyond maxmemory: it is bounded, and takes less memory
 * then than in the log. */
static enum redis_status execute_beyond(struct transaction *tx)
{
    struct key key;
    struct fold_cuts cuts = at_hand(tx)->cuts;
    buffer_clear(&tx->words, OUT_KEPT);
    buffer_clear(&tx->out, OUT_KEPT);
    size_t n = write_expected(tx, &tx->words);
    n += command_words(&tx->commands, &tx->words);
    script_head(&tx->out, &tx->session->scripts, SCRIPT_FOLD, 1 + cuts.n, n);
    /* In a cluster a key that never exists: a slot that is being moved then refuses the script,
     * which would break off at a key that is not named. */
    key_fixed(&key, tx->core->partitions.tag[tx->core->is_spread ? cuts.cuts[0].partition : 0],
        tx->core->is_spread ? "-" : "heads", SLICE(""));
    resp_word(&tx->out, key.p, key.n);
    for (unsigned i = 0; i < cuts.n; i++) {
        key_fixed(&key, tx->core->partitions.tag[cuts.cuts[i].partition], "state", SLICE(""));
        resp_word(&tx->out, key.p, key.n);
    }
    buffer_append(&tx->out, tx->words.p, tx->words.n);
    tx->out.failed = tx->out.failed || tx->words.failed;
    tx->found = (struct findings){.err = STORAGE_OK};
    return redis_ask_all(tx->session->redis, &tx->out, 1, tx->deadline_ms, take_script, tx);
}

static void count(struct transaction *tx)
{
    const struct look *look = at_hand(tx);
    atomic_fetch_add(&tx->core->stats.fold_transactions, 1);
    for (unsigned i = 0; i < look->cuts.n; i++) {
        if (tx->n_commands[i] > 0) {
            size_t events = share_events(look->shares[i]);
            atomic_fetch_add(&tx->core->stats.fold_events, (int64_t)events);
            size_t capped = share_capped(look->shares[i]);
            atomic_fetch_add(&tx->core->stats.names_capped, (int64_t)capped);
            atomic_fetch_add(
                &tx->core->stats.first_actions, (int64_t)share_firsts(look->shares[i]));
        }
    }
}

/* The commands of the transaction at hand. */
static enum fold_end carry_out(struct transaction *tx, struct fold_cuts next, int trim,
    bool *ret_again, enum storage_err *ret_err)
{
    write_commands(tx, trim);
    if (execute(tx, next) != REDIS_OK_STATUS || tx->found.lost) {
        return FOLD_LOST;
    }
    if (!tx->found.done && !drop_ahead(tx)) {
        return FOLD_LOST;
    }
    if (tx->found.err == STORAGE_OOM && (execute_beyond(tx) != REDIS_OK_STATUS || tx->found.lost)) {
        return FOLD_LOST;
    }
    if (tx->found.done) {
        count(tx);
        return FOLD_DONE;
    }
    *ret_again = tx->found.is_void;
    *ret_err = tx->found.err;
    return *ret_again ? FOLD_DONE : FOLD_ERR;
}

/* One attempt.  *ret_again: another one. */
static enum fold_end attempt(struct transaction *tx, struct fold_cuts cuts, struct fold_cuts next,
    int trim, bool *ret_again, uint32_t *ret_log, enum storage_err *ret_err)
{
    bool any;
    *ret_again = false;
    tx->found = (struct findings){.err = STORAGE_OK};
    if (!look(tx, cuts)) {
        *ret_err = tx->found.err;
        return tx->found.lost || !discard(tx, at_hand(tx)) ? FOLD_LOST : FOLD_ERR;
    }
    if (tx->core->is_spread && monotonic_ms() - tx->heads->asked_ms > HEADS_AGE_MS) {
        *ret_err = STORAGE_BEHIND; /* the round reads them again */
        return discard(tx, at_hand(tx)) ? FOLD_ERR : FOLD_LOST;
    }
    enum fold_end end = decide(tx, ret_again, &any, ret_log, ret_err);
    if (end != FOLD_DONE || *ret_again || !any) {
        return discard(tx, at_hand(tx)) ? end : FOLD_LOST;
    }
    learn(tx); /* no share rests on the memory now */
    return carry_out(tx, next, trim, ret_again, ret_err);
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
        end = attempt(tx, cuts, next, trim, &again, ret_log, ret_err);
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

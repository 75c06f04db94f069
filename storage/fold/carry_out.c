/* carry_out.c - the commands of a transaction: by MULTI and EXEC, or by fold.lua where Redis has no
 * memory left. */
#include "storage/fold/streams.h"
#include "storage/fold/transaction_state.h"
#include "storage/redis/ask.h"
#include "storage/redis/command_words.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/seen/fold.h"
#include "storage/session/reply_fault.h"

/* ---- MULTI .. EXEC ---- */

/* The transaction was carried out with the answers @replies.  False: these are too few or many. */
static bool take_done(struct transaction *tx, const struct reply *replies, size_t n)
{
    size_t at = 0;
    if (n != tx->n_all) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (replies[i].type == REPLY_ERROR) { /* a key has another type, which tallyd never does */
            atomic_fetch_add(&tx->core->stats.redis_errors, 1);
            core_notice(tx->core, STORAGE_REFUSING, replies[i].text.p);
        }
    }
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        core_note_open_slot(tx->core, tx->cuts.cuts[i].partition, false);
        if (tx->n_commands[i] > 0) {
            buffer_clear(&tx->due, OUT_KEPT);
            share_done(tx->shares[i], replies + at, &tx->due);
            share_learn(tx->shares[i]);
            share_show(tx->shares[i], &tx->core->stats);
            struct slice due = {tx->due.p, tx->due.n};
            seen_fold_due(tx->seen_fold, tx->cuts.cuts[i].partition, due);
            at += tx->n_commands[i];
        }
    }
    atomic_fetch_add(&tx->core->stats.fold_transactions, 1);
    tx->found.end = FOLD_DONE;
    return true;
}

/* Learn how long the transaction took, by the TIME at its ends. */
static void learn_pace(struct transaction *tx, const struct reply *first, const struct reply *last)
{
    struct work work = {.newest_s = 0};
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        if (tx->n_commands[i] > 0) {
            work_add(&work, &tx->cuts.cuts[i].work);
        }
    }
    pace_learn(&tx->pace, &work, reply_time_us(last) - reply_time_us(first), tx->now_ms / 1000);
}

/* Redis has refused the transaction.  False: the connection must be given up. */
static bool take_refusal(struct transaction *tx, const struct reply *reply)
{
    tx->found.end = FOLD_ERR;
    return fold_refused(
        tx->core, &tx->session->server, tx->cuts.cuts[0].partition, reply, &tx->found.err);
}

/* The replies behind MULTI: QUEUED for TIME, the commands and TIME; then that of EXEC. */
static bool take_exec(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    if (reply->type == REPLY_ERROR) {
        return take_refusal(tx, reply);
    }
    if (i < tx->n_all + 2) { /* QUEUED */
        return true;
    }
    if (reply->type == REPLY_NIL) {
        tx->found.end = FOLD_AGAIN;
        return true;
    }
    if (reply->type != REPLY_ARRAY || reply->n != tx->n_all + 2) {
        return false;
    }
    learn_pace(tx, &reply->items[0], &reply->items[reply->n - 1]);
    return take_done(tx, reply->items + 1, tx->n_all);
}

/* What follows MULTI: between two TIME the commands of all shares, and the trim; then EXEC. */
static void write_commands(struct transaction *tx, int trim)
{
    buffer_clear(&tx->commands, OUT_KEPT);
    resp_command(&tx->commands, "TIME", NULL);
    tx->counts_from = tx->commands.n;
    tx->n_all = 0;
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        if (tx->n_commands[i] > 0) {
            tx->n_commands[i] = share_write_commands(tx->shares[i], &tx->commands);
            tx->n_all += tx->n_commands[i];
        }
    }
    if (trim >= 0 && tx->fates[trim] == LOG_COUNTS) {
        const struct batch_log *log = &tx->batch->logs[trim];
        stream_write_trim(tx->core, 0, log->id, log->to, &tx->commands);
        tx->n_all++;
    }
    tx->counts_end = tx->commands.n;
    resp_command(&tx->commands, "TIME", NULL);
    resp_command(&tx->commands, "EXEC", NULL);
}

/* Send the commands, and take their answers.  tx->commands stays: fold.lua may have to carry them
 * out. */
static enum redis_status transaction_execute(struct transaction *tx)
{
    struct redis *redis = tx->session->redis;
    tx->found = (struct fold_result){.err = STORAGE_OK};
    tx->is_open = false;
    buffer_clear(&tx->out, OUT_KEPT);
    if (!redis_queue(redis, &tx->commands)) {
        return REDIS_LOST; /* out of memory */
    }
    return redis_ask_all(redis, &tx->out, tx->n_all + 3, tx->deadline_ms, take_exec, tx);
}

/* ---- where memory is full ---- */

/* Append what fold.lua compares: the logs that must have heads, and the states as they were read.
 * Returns how many words. */
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
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        n += share_write_expected(tx->shares[i], out);
    }
    return n + n_logs;
}

static bool take_script(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    (void)i;
    if (reply->type == REPLY_ERROR) {
        return take_refusal(tx, reply);
    }
    if (reply->type == REPLY_INTEGER) {
        tx->found.end = FOLD_AGAIN;
        return true;
    }
    return reply->type == REPLY_ARRAY && take_done(tx, reply->items, reply->n);
}

/* Have fold.lua carry the commands out beyond maxmemory.  What was acknowledged must be counted: it
 * is bounded, and takes less memory as counts than in the log. */
static enum redis_status execute_beyond(struct transaction *tx)
{
    struct key key;
    struct fold_cuts cuts = tx->cuts;
    buffer_clear(&tx->words, OUT_KEPT);
    buffer_clear(&tx->out, OUT_KEPT);
    size_t n = write_expected(tx, &tx->words);
    struct slice counts = {tx->commands.p + tx->counts_from, tx->counts_end - tx->counts_from};
    n += command_words(counts, &tx->words);
    script_head(&tx->out, &tx->session->scripts, SCRIPT_FOLD, 1 + cuts.n, n);
    /* In a cluster the first key is one that never exists.  So a slot that is being moved refuses
     * the script, which would else break off at a key that is not among its KEYS. */
    key_fixed(&key, tx->core->partitions.tag[tx->core->is_spread ? cuts.cuts[0].partition : 0],
        tx->core->is_spread ? "-" : "heads", SLICE(""));
    resp_word(&tx->out, key.p, key.n);
    for (unsigned i = 0; i < cuts.n; i++) {
        key_put(&tx->out, tx->core->partitions.tag[cuts.cuts[i].partition], "state");
    }
    buffer_append(&tx->out, tx->words.p, tx->words.n);
    tx->out.failed = tx->out.failed || tx->words.failed;
    tx->found = (struct fold_result){.err = STORAGE_OK};
    return redis_ask_all(tx->session->redis, &tx->out, 1, tx->deadline_ms, take_script, tx);
}

struct fold_result transaction_carry_out(struct transaction *tx, int trim)
{
    write_commands(tx, trim);
    if (transaction_execute(tx) != REDIS_OK_STATUS ||
        (tx->found.err == STORAGE_OOM && execute_beyond(tx) != REDIS_OK_STATUS)) {
        return (struct fold_result){.end = FOLD_LOST};
    }
    return tx->found;
}

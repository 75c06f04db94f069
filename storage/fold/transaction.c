#include "storage/fold/transaction.h"

#include <sodium.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/core/reply_fault.h"
#include "storage/fold/command_words.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/seen/fold.h"

#define OUT_KEPT ((size_t)256 * 1024)

/* What one look, or one EXEC, found. */
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
    struct share *shares[PARTITIONS_MAX]; /* by place in the transaction; made when needed */
    struct buffer out, due;
    struct buffer commands; /* of the transaction, between MULTI and EXEC */
    struct buffer words;    /* the same as arguments of fold.lua */

    /* Of the run at hand. */
    const struct batch *batch;
    const struct cut *cuts;
    unsigned n_cuts;
    struct heads *heads;
    size_t n_questions[PARTITIONS_MAX];
    size_t n_commands[PARTITIONS_MAX]; /* 0: nothing to count */
    size_t n_look;
    bool is_open; /* MULTI was answered, and neither EXEC nor DISCARD was sent */
    size_t n_all; /* commands of all shares, and the trim */
    int64_t now_ms;
    enum log_fate fates[BATCH_LOGS];
    struct findings found;

    /* Whose answer comes next. */
    unsigned at;
    size_t question;
};

struct transaction *transaction_new(struct core *core, struct seen_fold *seen_fold)
{
    struct transaction *tx = calloc(1, sizeof(*tx));
    unsigned char bytes[16];
    if (tx != NULL) {
        tx->core = core;
        tx->seen_fold = seen_fold;
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
    known_users_release(&tx->memory.users);
    for (unsigned i = 0; i < PARTITIONS_MAX; i++) {
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

uint32_t transaction_limit_us(const struct transaction *tx)
{
    return pace_limit_us(&tx->pace);
}

/* ---- the look ---- */

/* An error reply: nothing was done.  False: go on with no further reply. */
static bool note_error(struct transaction *tx, const struct reply *reply)
{
    atomic_fetch_add(&tx->core->stats.redis_errors, 1);
    if (tx->found.err == STORAGE_OK) { /* the first one tells why */
        tx->found.err = reply_err(reply, &tx->found.lost);
        if (tx->found.err == STORAGE_REFUSED) { /* what memory is too full for goes by script */
            core_notice(tx->core, STORAGE_REFUSING, reply->text.p);
        }
    }
    return !tx->found.lost;
}

static bool take_time(struct transaction *tx, const struct reply *reply)
{
    int64_t us = reply_time_us(reply);
    core_time_seen(tx->core, us);
    tx->now_ms = us / 1000;
    return us > 0;
}

static bool take_look(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    if (reply->type == REPLY_ERROR) {
        return note_error(tx, reply);
    }
    if (i + 1 == tx->n_look) { /* MULTI */
        tx->is_open = true;
        return true;
    }
    if (tx->found.err != STORAGE_OK || i < 1) { /* WATCH */
        return true;
    }
    if (i == 1) {
        return heads_take(tx->heads, reply);
    }
    if (i == 2) {
        return take_time(tx, reply);
    }
    while (tx->question == tx->n_questions[tx->at]) {
        tx->at++;
        tx->question = 0;
    }
    return share_take(tx->shares[tx->at], tx->question++, reply);
}

static void write_watch(struct transaction *tx, struct buffer *out)
{
    struct key key;
    resp_head(out, 1 + tx->n_cuts);
    resp_text(out, "WATCH");
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        key_fixed(&key, tx->core->partitions.tag[tx->cuts[i].partition], "state", SLICE(""));
        resp_word(out, key.p, key.n);
    }
    key_fixed(&key, tx->core->partitions.tag[0], "heads", SLICE(""));
    resp_head(out, 2);
    resp_text(out, "HGETALL");
    resp_word(out, key.p, key.n);
    resp_command(out, "TIME", NULL);
}

/* Watch, and read all that is needed to decide.  False: out of memory. */
static bool begin_shares(struct transaction *tx)
{
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        if (tx->shares[i] == NULL) {
            tx->shares[i] = share_new(tx->core, &tx->memory);
        }
        if (tx->shares[i] == NULL || !share_begin(tx->shares[i], tx->batch, &tx->cuts[i])) {
            return false;
        }
    }
    return true;
}

/* MULTI goes at the end of the look, and its answer is seen before anything else is sent.  Were it
 * sent with the commands, a Redis that refuses it (BUSY, LOADING) and recovers a moment later would
 * run those behind it one by one: a cursor would move without its data. */
static enum redis_status look(struct transaction *tx, struct session *session, int64_t deadline_ms)
{
    tx->n_look = 4;
    buffer_clear(&tx->out, OUT_KEPT);
    write_watch(tx, &tx->out);
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        tx->n_questions[i] = share_write_questions(tx->shares[i], &tx->out);
        tx->n_look += tx->n_questions[i];
    }
    resp_command(&tx->out, "MULTI", NULL);
    tx->at = 0;
    tx->question = 0;
    tx->is_open = false;
    return redis_ask_all(session->redis, &tx->out, tx->n_look, deadline_ms, take_look, tx);
}

/* End an attempt that comes to no EXEC.  False: the connection is lost. */
static bool discard(struct transaction *tx, struct session *session, int64_t deadline_ms)
{
    const struct reply *reply;
    buffer_clear(&tx->out, OUT_KEPT);
    resp_command(&tx->out, tx->is_open ? "DISCARD" : "UNWATCH", NULL);
    tx->is_open = false;
    return redis_ask(session->redis, &tx->out, deadline_ms, &reply) == REDIS_OK_STATUS &&
           reply->type != REPLY_ERROR;
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
    *ret_again = *ret_any = false;
    if (!judge_logs(tx, ret_log)) {
        return FOLD_STALE;
    }
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        tx->n_commands[i] = 0;
        switch (share_decide(tx->shares[i], tx->fates, tx->now_ms, ret_log)) {
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
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        if (tx->n_commands[i] > 0) {
            buffer_clear(&tx->due, OUT_KEPT);
            share_done(tx->shares[i], replies + at, &tx->due);
            struct slice due = {tx->due.p, tx->due.n};
            seen_fold_due(tx->seen_fold, tx->cuts[i].partition, due);
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
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        us += tx->n_commands[i] > 0 ? tx->cuts[i].us : 0;
    }
    pace_learn(&tx->pace, us, reply_time_us(last) - reply_time_us(first));
}

/* Behind MULTI: TIME, the commands, TIME, EXEC. */
static bool take_exec(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    if (reply->type == REPLY_ERROR) {
        return note_error(tx, reply);
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

/* All partitions have counted the entries of @log. */
static void write_trim(struct transaction *tx, uint32_t log, struct buffer *out)
{
    struct key key;
    key_fixed(&key, tx->core->partitions.tag[0], "log:", slice_of(tx->batch->logs[log].id));
    resp_head(out, 4);
    resp_text(out, "XTRIM");
    resp_word(out, key.p, key.n);
    resp_text(out, "MINID");
    resp_decimal(out, (int64_t)tx->batch->logs[log].to + 1);
}

/* The commands of all shares, and the trim. */
static void write_commands(struct transaction *tx, int trim)
{
    buffer_clear(&tx->commands, OUT_KEPT);
    tx->n_all = 0;
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        if (tx->n_commands[i] > 0) {
            tx->n_commands[i] = share_write_commands(tx->shares[i], &tx->commands);
            tx->n_all += tx->n_commands[i];
        }
    }
    if (trim >= 0 && tx->fates[trim] == LOG_COUNTS) {
        write_trim(tx, (uint32_t)trim, &tx->commands);
        tx->n_all++;
    }
}

static enum redis_status execute(
    struct transaction *tx, struct session *session, int64_t deadline_ms)
{
    buffer_clear(&tx->out, OUT_KEPT);
    resp_command(&tx->out, "TIME", NULL);
    buffer_append(&tx->out, tx->commands.p, tx->commands.n);
    resp_command(&tx->out, "TIME", NULL);
    resp_command(&tx->out, "EXEC", NULL);
    tx->is_open = false;
    tx->out.failed = tx->out.failed || tx->commands.failed;
    return redis_ask_all(session->redis, &tx->out, tx->n_all + 3, deadline_ms, take_exec, tx);
}

/* ---- where memory is full ---- */

static size_t write_expected(struct transaction *tx, struct buffer *out)
{
    size_t n_logs = 0;
    size_t n = 1;
    for (size_t l = 0; l < tx->batch->n_logs; l++) {
        n_logs += tx->fates[l] == LOG_COUNTS;
    }
    resp_decimal(out, (int64_t)n_logs);
    for (size_t l = 0; l < tx->batch->n_logs; l++) {
        if (tx->fates[l] == LOG_COUNTS) {
            resp_text(out, tx->batch->logs[l].id);
        }
    }
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        n += share_write_expected(tx->shares[i], out);
    }
    return n + n_logs;
}

static bool take_script(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    (void)i;
    if (reply->type == REPLY_ERROR) {
        return note_error(tx, reply);
    }
    tx->found.is_void = reply->type == REPLY_INTEGER;
    return tx->found.is_void ||
           (reply->type == REPLY_ARRAY && take_done(tx, reply->items, reply->n));
}

/* What has been acknowledged is counted also beyond maxmemory: it is bounded, and takes less memory
 * then than in the log. */
static enum redis_status execute_beyond(
    struct transaction *tx, struct session *session, int64_t deadline_ms)
{
    struct key key;
    buffer_clear(&tx->words, OUT_KEPT);
    buffer_clear(&tx->out, OUT_KEPT);
    size_t n = write_expected(tx, &tx->words);
    n += command_words(&tx->commands, &tx->words);
    script_head(&tx->out, &session->scripts, SCRIPT_FOLD, 1 + tx->n_cuts, n);
    key_fixed(&key, tx->core->partitions.tag[0], "heads", SLICE(""));
    resp_word(&tx->out, key.p, key.n);
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        key_fixed(&key, tx->core->partitions.tag[tx->cuts[i].partition], "state", SLICE(""));
        resp_word(&tx->out, key.p, key.n);
    }
    buffer_append(&tx->out, tx->words.p, tx->words.n);
    tx->out.failed = tx->out.failed || tx->words.failed;
    tx->found = (struct findings){.err = STORAGE_OK};
    return redis_ask_all(session->redis, &tx->out, 1, deadline_ms, take_script, tx);
}

static void count(struct transaction *tx)
{
    atomic_fetch_add(&tx->core->stats.fold_transactions, 1);
    for (unsigned i = 0; i < tx->n_cuts; i++) {
        if (tx->n_commands[i] > 0) {
            atomic_fetch_add(&tx->core->stats.fold_events, (int64_t)share_events(tx->shares[i]));
        }
    }
}

/* One attempt.  *ret_again: another one. */
static enum fold_end attempt(struct transaction *tx, struct session *session, int trim,
    int64_t deadline_ms, bool *ret_again, uint32_t *ret_log, enum storage_err *ret_err)
{
    bool any;
    *ret_again = false;
    tx->found = (struct findings){.err = STORAGE_OK};
    if (!begin_shares(tx)) {
        *ret_err = STORAGE_NOMEM;
        return FOLD_ERR;
    }
    if (look(tx, session, deadline_ms) != REDIS_OK_STATUS || tx->found.lost) {
        return FOLD_LOST;
    }
    if (tx->found.err != STORAGE_OK) {
        *ret_err = tx->found.err;
        return discard(tx, session, deadline_ms) ? FOLD_ERR : FOLD_LOST;
    }
    enum fold_end end = decide(tx, ret_again, &any, ret_log, ret_err);
    if (end != FOLD_DONE || *ret_again || !any) {
        return discard(tx, session, deadline_ms) ? end : FOLD_LOST;
    }
    write_commands(tx, trim);
    if (execute(tx, session, deadline_ms) != REDIS_OK_STATUS || tx->found.lost) {
        return FOLD_LOST;
    }
    if (tx->found.err == STORAGE_OOM &&
        (execute_beyond(tx, session, deadline_ms) != REDIS_OK_STATUS || tx->found.lost)) {
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

enum fold_end transaction_run(struct transaction *tx, struct session *session,
    const struct batch *batch, const struct cut *cuts, unsigned n_cuts, int trim,
    int64_t deadline_ms, struct heads *heads, uint32_t *ret_log, enum storage_err *ret_err)
{
    bool again;
    enum fold_end end;
    tx->batch = batch;
    tx->cuts = cuts;
    tx->n_cuts = n_cuts;
    tx->heads = heads;
    do {
        end = attempt(tx, session, trim, deadline_ms, &again, ret_log, ret_err);
        if (again) {
            atomic_fetch_add(&tx->core->stats.fold_again, 1);
            end = FOLD_LOST; /* if it is too late to begin again */
        }
    } while (again && monotonic_ms() < deadline_ms);
    if (end == FOLD_LOST) {
        transaction_forget(tx);
    }
    return end;
}

/* look.c - the first half of a transaction: WATCH the states, and read what the decision needs.
 *
 * One write is, as a rule:
 *
 *     WATCH of the states; HGETALL of the heads; TIME; what the shares ask; MULTI
 *
 * MULTI is answered before a command of the transaction is sent.  Were both sent together, a Redis
 * that refuses MULTI (BUSY, LOADING) and recovers a moment later would run the commands behind it
 * one by one: a cursor would move without its data.
 *
 * A share's questions of SHARE_MORE go out behind the answers to its first ones.  Those that the
 * share has behind its decision go out in transaction_look_on(), step by step.  MULTI goes out with
 * the last questions of all shares.
 */
#include "storage/fold/transaction_state.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define REPLY_OF_HEADS 1

/* The first replies are those to WATCH, HGETALL and TIME.  In a cluster the heads are not read here
 * (lanes.h), so there is no HGETALL. */
static size_t fixed_replies(const struct transaction *tx)
{
    return tx->core->is_spread ? 2 : 3;
}

/* ---- the answers ---- */

static bool take_time(struct transaction *tx, const struct reply *reply)
{
    int64_t us = reply_time_us(reply);
    core_time_of(tx->core, tx->cuts.cuts[0].partition, us);
    tx->now_ms = us / 1000;
    return us > 0;
}

static bool take_heads(struct transaction *tx, const struct reply *reply)
{
    heads_clear(tx->heads);
    return heads_add(tx->heads, 0, reply) == STORAGE_OK;
}

static bool look_take(void *data, size_t i, const struct reply *reply)
{
    struct transaction *tx = data;
    size_t fixed = tx->step == SHARE_STATE ? fixed_replies(tx) : 0;
    if (reply->type == REPLY_ERROR) {
        return fold_refused(
            tx->core, &tx->session->server, tx->cuts.cuts[0].partition, reply, &tx->err);
    }
    if (tx->has_multi && i + 1 == tx->n_replies) {
        tx->is_open = true;
        return true;
    }
    if (tx->err != STORAGE_OK) { /* what comes behind an error is of no use */
        return true;
    }
    if (i < fixed) {
        return i + 1 == fixed        ? take_time(tx, reply)
               : i == REPLY_OF_HEADS ? take_heads(tx, reply)
                                     : true; /* WATCH */
    }
    while (tx->next_question == tx->n_questions[tx->next_share]) {
        tx->next_share++;
        tx->next_question = 0;
    }
    return share_take(tx->shares[tx->next_share], tx->step, tx->next_question++, reply);
}

/* ---- the questions ---- */

static void write_watch(struct transaction *tx)
{
    const struct partitions *partitions = &tx->core->partitions;
    resp_head(&tx->out, 1 + tx->cuts.n);
    resp_text(&tx->out, "WATCH");
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        key_put(&tx->out, partitions->tag[tx->cuts.cuts[i].partition], "state");
    }
    if (!tx->core->is_spread) {
        key_command(&tx->out, "HGETALL", partitions->tag[0], "heads", 0);
    }
    resp_command(&tx->out, "TIME", NULL);
    tx->n_replies = fixed_replies(tx);
}

/* Ask Redis what the shares ask in @step.  @last: they ask nothing more, so MULTI follows. */
static struct fold_result ask_step(struct transaction *tx, enum share_step step, bool last)
{
    buffer_clear(&tx->out, OUT_KEPT);
    tx->step = step;
    tx->next_share = 0;
    tx->next_question = tx->n_replies = 0;
    if (step == SHARE_STATE) {
        write_watch(tx);
    }
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        tx->n_questions[i] = share_write(tx->shares[i], step, &tx->out);
        tx->n_replies += tx->n_questions[i];
    }
    if (last) {
        resp_command(&tx->out, "MULTI", NULL);
        tx->has_multi = true;
        tx->n_replies++;
    }
    if (tx->n_replies > 0 && redis_ask_all(tx->session->redis, &tx->out, tx->n_replies,
                                 tx->deadline_ms, look_take, tx) != REDIS_OK_STATUS) {
        return (struct fold_result){.end = FOLD_LOST};
    }
    return tx->err != STORAGE_OK ? fold_failed(tx->err) : (struct fold_result){.end = FOLD_DONE};
}

static bool begin_shares(struct transaction *tx)
{
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        if (tx->shares[i] == NULL) {
            tx->shares[i] = share_new(tx->core, &tx->memory);
        }
        if (tx->shares[i] == NULL || !share_begin(tx->shares[i], tx->batch, &tx->cuts.cuts[i])) {
            return false;
        }
    }
    return true;
}

struct fold_result transaction_look(struct transaction *tx)
{
    bool more = false;
    bool last = false;
    tx->is_open = tx->has_multi = false;
    tx->err = STORAGE_OK;
    if (!begin_shares(tx)) {
        return fold_failed(STORAGE_NOMEM);
    }
    for (unsigned i = 0; i < tx->cuts.n; i++) {
        more = more || share_asks_more(tx->shares[i]);
        last = last || share_asks_last(tx->shares[i]);
    }
    struct fold_result result = ask_step(tx, SHARE_STATE, !more && !last);
    return result.end == FOLD_DONE && more ? ask_step(tx, SHARE_MORE, !last) : result;
}

struct fold_result transaction_look_on(struct transaction *tx)
{
    struct fold_result result = {.end = FOLD_DONE};
    for (enum share_step step = SHARE_LAST; result.end == FOLD_DONE && !tx->has_multi; step++) {
        result = ask_step(tx, step, step == SHARE_MINUTES);
    }
    for (unsigned i = 0; result.end <= FOLD_AGAIN && i < tx->cuts.n; i++) {
        result.end = share_fits(tx->shares[i]) ? result.end : FOLD_AGAIN;
    }
    return result;
}

bool transaction_discard(struct transaction *tx)
{
    const struct reply *reply;
    buffer_clear(&tx->out, OUT_KEPT);
    resp_command(&tx->out, tx->is_open ? "DISCARD" : "UNWATCH", NULL);
    tx->is_open = false;
    return redis_ask(tx->session->redis, &tx->out, tx->deadline_ms, &reply) == REDIS_OK_STATUS &&
           reply->type != REPLY_ERROR;
}

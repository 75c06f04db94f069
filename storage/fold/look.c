#include "storage/fold/look.h"

#include "storage/core/reply_fault.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* WATCH, HGETALL, TIME.  In a cluster the heads are not read here: see lanes.h. */
#define REPLY_OF_HEADS      1
#define FIXED_REPLIES(look) (2 + !(look)->core->is_spread)

void look_release(struct look *look)
{
    for (unsigned i = 0; i < CUTS_MAX; i++) {
        share_free(look->shares[i]);
    }
}

/* ---- the commands ---- */

static bool begin_shares(struct look *look, struct fold_memory *memory, const struct batch *batch)
{
    for (unsigned i = 0; i < look->cuts.n; i++) {
        if (look->shares[i] == NULL) {
            look->shares[i] = share_new(look->core, memory);
        }
        if (look->shares[i] == NULL || !share_begin(look->shares[i], batch, &look->cuts.cuts[i])) {
            return false;
        }
    }
    return true;
}

static void write_watch(const struct look *look, struct buffer *out)
{
    struct key key;
    const struct partitions *partitions = &look->core->partitions;
    resp_head(out, 1 + look->cuts.n);
    resp_text(out, "WATCH");
    for (unsigned i = 0; i < look->cuts.n; i++) {
        key_fixed(&key, partitions->tag[look->cuts.cuts[i].partition], "state", SLICE(""));
        resp_word(out, key.p, key.n);
    }
    if (!look->core->is_spread) {
        key_fixed(&key, partitions->tag[0], "heads", SLICE(""));
        resp_head(out, 2);
        resp_text(out, "HGETALL");
        resp_word(out, key.p, key.n);
    }
    resp_command(out, "TIME", NULL);
}

static void write_multi(struct look *look, struct buffer *out)
{
    resp_command(out, "MULTI", NULL);
    look->has_multi = true;
    look->n_replies++;
}

bool look_write(struct look *look, struct core *core, struct fold_memory *memory,
    const struct batch *batch, struct fold_cuts cuts, struct buffer *out)
{
    look->core = core;
    look->cuts = cuts;
    look->err = STORAGE_OK;
    look->is_open = look->is_lost = false;
    look->has_multi = false;
    look->n_replies = (size_t)FIXED_REPLIES(look);
    if (!begin_shares(look, memory, batch)) {
        return false;
    }
    write_watch(look, out);
    look->asks_more = look->asks_last = false;
    for (unsigned i = 0; i < cuts.n; i++) {
        look->n_questions[i] = share_write_questions(look->shares[i], out);
        look->n_replies += look->n_questions[i];
        look->asks_more = look->asks_more || share_asks_more(look->shares[i]);
        look->asks_last = look->asks_last || share_asks_last(look->shares[i]);
    }
    if (!look->asks_more && !look->asks_last) {
        write_multi(look, out);
    }
    look->is_sent = true;
    return true;
}

/* A further write: what each share asks by @write. */
static void write_further(
    struct look *look, size_t (*write)(struct share *, struct buffer *), struct buffer *out)
{
    look->n_replies = 0;
    look->at = 0;
    look->question = 0;
    for (unsigned i = 0; i < look->cuts.n; i++) {
        look->n_questions[i] = write(look->shares[i], out);
        look->n_replies += look->n_questions[i];
    }
}

/* ---- the answers ---- */

bool fold_note_error(struct core *core, const struct reply *reply, enum storage_err *err)
{
    bool lost = false;
    atomic_fetch_add(&core->stats.redis_errors, 1);
    if (*err == STORAGE_OK) { /* the first one tells why */
        *err = reply_err(reply, &lost);
        if (*err == STORAGE_REFUSED) { /* what memory is too full for goes by script */
            core_notice(core, STORAGE_REFUSING, reply->text.p);
        }
    }
    return !lost;
}

void fold_note_redirect(struct core *core, unsigned partition, const struct reply *reply)
{
    if (reply_is_error(reply, "ASK") || reply_is_error(reply, "TRYAGAIN")) {
        core_note_open_slot(core, partition, true);
    }
}

static bool take_time(struct look *look, const struct reply *reply)
{
    int64_t us = reply_time_us(reply);
    core_time_of(look->core, look->cuts.cuts[0].partition, us);
    look->now_ms = us / 1000;
    return us > 0;
}

/* Whose the next answer is. */
static struct share *next_share(struct look *look, size_t *ret_question)
{
    while (look->question == look->n_questions[look->at]) {
        look->at++;
        look->question = 0;
    }
    *ret_question = look->question++;
    return look->shares[look->at];
}

/* Is it the answer to a question?  Else it is an error, what comes behind one, or MULTI's. */
static bool is_answer(struct look *look, size_t i, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR) {
        fold_note_redirect(look->core, look->cuts.cuts[0].partition, reply);
        server_refused(look->core, look->server, look->cuts.cuts[0].partition, reply);
        look->is_lost = !fold_note_error(look->core, reply, &look->err);
        return false;
    }
    if (look->has_multi && i + 1 == look->n_replies) {
        look->is_open = true;
        return false;
    }
    return look->err == STORAGE_OK;
}

static bool look_take_one(void *data, size_t i, const struct reply *reply)
{
    struct look *look = data;
    size_t question;
    if (!is_answer(look, i, reply)) {
        return !look->is_lost;
    }
    if (i < 1) { /* WATCH */
        return true;
    }
    if (i == REPLY_OF_HEADS && !look->core->is_spread) {
        return heads_take(look->heads, reply);
    }
    if (i + 1 == (size_t)FIXED_REPLIES(look)) {
        return take_time(look, reply);
    }
    struct share *share = next_share(look, &question);
    return share_take(share, question, reply);
}

static bool take_more(void *data, size_t i, const struct reply *reply)
{
    struct look *look = data;
    size_t question;
    if (!is_answer(look, i, reply)) {
        return !look->is_lost;
    }
    struct share *share = next_share(look, &question);
    return share_take_more(share, question, reply);
}

static bool take_last(void *data, size_t i, const struct reply *reply)
{
    struct look *look = data;
    size_t question;
    if (!is_answer(look, i, reply)) {
        return !look->is_lost;
    }
    return share_take_last(next_share(look, &question), reply);
}

enum redis_status look_read(struct look *look, struct session *session, struct buffer *out,
    int64_t deadline_ms, struct heads *heads)
{
    look->heads = heads;
    look->server = &session->server;
    look->is_sent = false;
    look->at = 0;
    look->question = 0;
    enum redis_status status =
        redis_ask_all(session->redis, out, look->n_replies, deadline_ms, look_take_one, look);
    if (status != REDIS_OK_STATUS || look->err != STORAGE_OK || !look->asks_more) {
        return status;
    }
    write_further(look, share_write_more, out);
    if (!look->asks_last) {
        write_multi(look, out);
    }
    return redis_ask_all(session->redis, out, look->n_replies, deadline_ms, take_more, look);
}

/* What the shares ask by @write, which may be nothing. */
static enum redis_status ask_last(struct look *look, struct session *session, struct buffer *out,
    int64_t deadline_ms, size_t (*write)(struct share *, struct buffer *))
{
    write_further(look, write, out);
    return look->n_replies == 0
               ? REDIS_OK_STATUS
               : redis_ask_all(session->redis, out, look->n_replies, deadline_ms, take_last, look);
}

/* Do all shares go on? */
static bool look_fit(struct look *look)
{
    bool all = true;
    for (unsigned i = 0; i < look->cuts.n; i++) {
        all = share_fits(look->shares[i]) && all;
    }
    return all;
}

enum redis_status look_end(struct look *look, struct session *session, struct buffer *out,
    int64_t deadline_ms, bool *ret_again)
{
    enum redis_status status = REDIS_OK_STATUS;
    *ret_again = false;
    if (look->has_multi) {
        return REDIS_OK_STATUS;
    }
    status = ask_last(look, session, out, deadline_ms, share_write_last);
    if (status == REDIS_OK_STATUS && look->err == STORAGE_OK) {
        status = ask_last(look, session, out, deadline_ms, share_write_rest);
    }
    if (status != REDIS_OK_STATUS || look->err != STORAGE_OK) {
        return status;
    }
    if (!look_fit(look)) {
        *ret_again = true;
        return REDIS_OK_STATUS;
    }
    write_further(look, share_write_minutes, out);
    write_multi(look, out);
    return redis_ask_all(session->redis, out, look->n_replies, deadline_ms, take_last, look);
}

bool look_discard(
    struct look *look, struct session *session, int64_t deadline_ms, struct buffer *out)
{
    const struct reply *reply;
    resp_command(out, look->is_open ? "DISCARD" : "UNWATCH", NULL);
    look->is_open = false;
    return redis_ask(session->redis, out, deadline_ms, &reply) == REDIS_OK_STATUS &&
           reply->type != REPLY_ERROR;
}

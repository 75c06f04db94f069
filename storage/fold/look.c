#include "storage/fold/look.h"

#include "storage/core/reply_fault.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* WATCH, HGETALL, TIME, .., MULTI.  In a cluster the heads are not read here: see lanes.h. */
#define REPLY_OF_HEADS      1
#define FIXED_REPLIES(look) (3 + !(look)->core->is_spread)

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

bool look_write(struct look *look, struct core *core, struct fold_memory *memory,
    const struct batch *batch, struct fold_cuts cuts, struct buffer *out)
{
    look->core = core;
    look->cuts = cuts;
    look->err = STORAGE_OK;
    look->is_open = look->is_lost = false;
    look->at = 0;
    look->question = 0;
    look->n_replies = (size_t)FIXED_REPLIES(look);
    if (!begin_shares(look, memory, batch)) {
        return false;
    }
    write_watch(look, out);
    for (unsigned i = 0; i < cuts.n; i++) {
        look->n_questions[i] = share_write_questions(look->shares[i], out);
        look->n_replies += look->n_questions[i];
    }
    resp_command(out, "MULTI", NULL);
    look->is_sent = true;
    return true;
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

static bool take_time(struct look *look, const struct reply *reply)
{
    int64_t us = reply_time_us(reply);
    core_time_of(look->core, look->cuts.cuts[0].partition, us);
    look->now_ms = us / 1000;
    return us > 0;
}

static bool take(void *data, size_t i, const struct reply *reply)
{
    struct look *look = data;
    if (reply->type == REPLY_ERROR) {
        server_refused(look->core, look->server, look->cuts.cuts[0].partition, reply);
        look->is_lost = !fold_note_error(look->core, reply, &look->err);
        return !look->is_lost;
    }
    if (i + 1 == look->n_replies) { /* MULTI */
        look->is_open = true;
        return true;
    }
    if (look->err != STORAGE_OK || i < 1) { /* WATCH */
        return true;
    }
    if (i == REPLY_OF_HEADS && !look->core->is_spread) {
        return heads_take(look->heads, reply);
    }
    if (i + 2 == (size_t)FIXED_REPLIES(look)) {
        return take_time(look, reply);
    }
    while (look->question == look->n_questions[look->at]) {
        look->at++;
        look->question = 0;
    }
    return share_take(look->shares[look->at], look->question++, reply);
}

enum redis_status look_read(struct look *look, struct session *session, struct buffer *out,
    int64_t deadline_ms, struct heads *heads)
{
    look->heads = heads;
    look->server = &session->server;
    look->is_sent = false;
    return redis_ask_all(session->redis, out, look->n_replies, deadline_ms, take, look);
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

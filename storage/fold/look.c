#include "storage/fold/look.h"

#include "storage/core/reply_fault.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* WATCH, HGETALL, TIME.  In a cluster the heads are not read here: see lanes.h. */
#define REPLY_OF_HEADS 1

static size_t fixed_replies(const struct look *look)
{
    return look->core->is_spread ? 2 : 3;
}

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
    const struct partitions *partitions = &look->core->partitions;
    resp_head(out, 1 + look->cuts.n);
    resp_text(out, "WATCH");
    for (unsigned i = 0; i < look->cuts.n; i++) {
        key_put(out, partitions->tag[look->cuts.cuts[i].partition], "state");
    }
    if (!look->core->is_spread) {
        key_command(out, "HGETALL", partitions->tag[0], "heads", 0);
    }
    resp_command(out, "TIME", NULL);
}

static void write_multi(struct look *look, struct buffer *out)
{
    resp_command(out, "MULTI", NULL);
    look->has_multi = true;
    look->n_replies++;
}

/* What the shares ask in @step, behind @n other commands. */
static void write_step(struct look *look, enum share_step step, size_t n, struct buffer *out)
{
    look->step = step;
    look->n_replies = n;
    look->at = 0;
    look->question = 0;
    for (unsigned i = 0; i < look->cuts.n; i++) {
        look->n_questions[i] = share_write(look->shares[i], step, out);
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

bool fold_refused(struct core *core, struct server *server, unsigned partition,
    const struct reply *reply, enum storage_err *err)
{
    if (reply_is_error(reply, "ASK") || reply_is_error(reply, "TRYAGAIN")) {
        core_note_open_slot(core, partition, true);
    }
    server_refused(core, server, partition, reply);
    return fold_note_error(core, reply, err);
}

static bool take_time(struct look *look, const struct reply *reply)
{
    int64_t us = reply_time_us(reply);
    core_time_of(look->core, look->cuts.cuts[0].partition, us);
    look->now_ms = us / 1000;
    return us > 0;
}

static bool look_take(void *data, size_t i, const struct reply *reply)
{
    struct look *look = data;
    size_t fixed = look->step == SHARE_STATE ? fixed_replies(look) : 0;
    if (reply->type == REPLY_ERROR) {
        return fold_refused(
            look->core, look->server, look->cuts.cuts[0].partition, reply, &look->err);
    }
    if (look->has_multi && i + 1 == look->n_replies) {
        look->is_open = true;
        return true;
    }
    if (look->err != STORAGE_OK) { /* what comes behind an error is of no use */
        return true;
    }
    if (i < fixed) {
        return i + 1 == fixed        ? take_time(look, reply)
               : i == REPLY_OF_HEADS ? heads_take(look->heads, reply)
                                     : true; /* WATCH */
    }
    while (look->question == look->n_questions[look->at]) {
        look->at++;
        look->question = 0;
    }
    return share_take(look->shares[look->at], look->step, look->question++, reply);
}

static enum redis_status look_ask(
    struct look *look, struct session *session, struct buffer *out, int64_t deadline_ms)
{
    return redis_ask_all(session->redis, out, look->n_replies, deadline_ms, look_take, look);
}

enum redis_status look_begin(struct look *look, struct session *session, struct fold_memory *memory,
    const struct batch *batch, struct fold_cuts cuts, struct buffer *out, int64_t deadline_ms,
    struct heads *heads)
{
    bool more = false;
    bool last = false;
    look->core = session->core;
    look->server = &session->server;
    look->heads = heads;
    look->cuts = cuts;
    look->is_open = look->has_multi = false;
    look->err = begin_shares(look, memory, batch) ? STORAGE_OK : STORAGE_NOMEM;
    if (look->err != STORAGE_OK) {
        return REDIS_OK_STATUS;
    }
    for (unsigned i = 0; i < cuts.n; i++) {
        more = more || share_asks_more(look->shares[i]);
        last = last || share_asks_last(look->shares[i]);
    }
    write_watch(look, out);
    write_step(look, SHARE_STATE, fixed_replies(look), out);
    if (!more && !last) {
        write_multi(look, out);
    }
    enum redis_status status = look_ask(look, session, out, deadline_ms);
    if (status != REDIS_OK_STATUS || look->err != STORAGE_OK || !more) {
        return status;
    }
    write_step(look, SHARE_MORE, 0, out);
    if (!last) {
        write_multi(look, out);
    }
    return look_ask(look, session, out, deadline_ms);
}

enum redis_status look_end(
    struct look *look, struct session *session, struct buffer *out, int64_t deadline_ms)
{
    for (enum share_step step = SHARE_LAST; !look->has_multi; step++) {
        write_step(look, step, 0, out);
        if (step == SHARE_MINUTES) {
            write_multi(look, out);
        }
        enum redis_status status =
            look->n_replies == 0 ? REDIS_OK_STATUS : look_ask(look, session, out, deadline_ms);
        if (status != REDIS_OK_STATUS || look->err != STORAGE_OK) {
            return status;
        }
    }
    return REDIS_OK_STATUS;
}

bool look_fits(struct look *look)
{
    bool all = true;
    for (unsigned i = 0; i < look->cuts.n; i++) {
        all = share_fits(look->shares[i]) && all;
    }
    return all;
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

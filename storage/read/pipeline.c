#include "storage/read/pipeline.h"

#include <stdio.h>
#include <string.h>

#include "storage/redis/resp.h"
#include "storage/session/dispatcher.h"
#include "storage/session/reply_fault.h"

#define OUT_KEEP (64 * 1024) /* bytes of commands whose memory is kept */

void pipeline_init(struct pipeline *p, struct session *session, int64_t deadline_ms)
{
    *p = (struct pipeline){.session = session, .deadline_ms = deadline_ms, .err = STORAGE_OK};
    buffer_init(&p->out);
    if (session->dispatcher != NULL) {
        p->changes = session->dispatcher->links.changes;
    }
}

void pipeline_keep_order(struct pipeline *p)
{
    p->keeps_order = true;
}

void pipeline_stay(struct pipeline *p, bool stays)
{
    p->stays = stays;
}

/* ---- sending ---- */

/* End the dispatcher's group that is open. */
static void end_group(struct pipeline *p)
{
    if (p->n_group > 0 && !dispatcher_end(p->session->dispatcher, p->n_group)) {
        (void)pipeline_fail(p, STORAGE_NOMEM);
    }
    p->n_group = 0;
}

struct buffer *pipeline_commands(struct pipeline *p, unsigned partition, size_t n)
{
    struct dispatcher *dispatcher = p->session->dispatcher;
    p->n += n;
    if (dispatcher == NULL) {
        return &p->out;
    }
    if (p->n_group > 0 && p->keeps_order && p->group == partition) {
        p->n_group += n;
        return &dispatcher->bytes;
    }
    end_group(p);
    p->group = partition;
    p->n_group = n;
    return dispatcher_begin(
        dispatcher, partition, p->keeps_order || p->stays ? DISPATCH_ORDERED : DISPATCH_SINGLE);
}

struct buffer *pipeline_command(struct pipeline *p, unsigned partition, const char *name, size_t n)
{
    struct buffer *out = pipeline_commands(p, partition, 1);
    p->scans = p->scans || strstr(name, "SCAN") != NULL;
    resp_head(out, 1 + n);
    resp_text(out, name);
    return out;
}

struct buffer *pipeline_script(
    struct pipeline *p, unsigned partition, enum script script, size_t n_keys, size_t n_args)
{
    struct buffer *out = pipeline_commands(p, partition, 1);
    script_head(out, &p->session->scripts, script, n_keys, n_args);
    return out;
}

/* Send the commands that were begun.  False: see err. */
static bool send_begun(struct pipeline *p)
{
    struct dispatcher *dispatcher = p->session->dispatcher;
    if (dispatcher == NULL) {
        return redis_queue(p->session->redis, &p->out) || pipeline_fail(p, STORAGE_NOMEM);
    }
    end_group(p);
    if (p->err != STORAGE_OK) {
        return false;
    }
    if (!p->stays) {
        dispatcher_send(dispatcher, p->deadline_ms);
        return true;
    }
    p->lost = !dispatcher_send_unchanged(dispatcher, p->changes, p->deadline_ms);
    return !p->lost || pipeline_fail(p, STORAGE_DOWN);
}

bool pipeline_send(struct pipeline *p, bool writes)
{
    if (p->err == STORAGE_OK && p->n > 0) {
        if (send_begun(p)) {
            p->awaited += p->n;
            p->writes = writes;
        }
    }
    buffer_clear(&p->out, OUT_KEEP);
    p->n = 0;
    return p->err == STORAGE_OK;
}

/* ---- taking ---- */

/* Take an error reply.  A script that fails does so before its first write: nothing of it holds. */
static void take_error(struct pipeline *p, const struct reply *reply)
{
    enum storage_err err = reply_err(reply, &p->lost);
    if (p->err == STORAGE_OK && err != STORAGE_OOM) { /* the text of OOM says what to do itself */
        (void)snprintf(p->detail, sizeof(p->detail), "%s", reply->text.p);
    }
    (void)pipeline_fail(p, err);
}

static enum redis_status await_one(struct pipeline *p, const struct reply **ret)
{
    struct dispatcher *dispatcher = p->session->dispatcher;
    if (dispatcher == NULL) {
        return redis_await(p->session->redis, p->deadline_ms, ret);
    }
    enum redis_status status = dispatcher_await(dispatcher, p->deadline_ms, ret);
    if (status == REDIS_OK_STATUS && p->scans && dispatcher->links.changes != p->changes) {
        dispatcher_forget(dispatcher);
        return REDIS_LOST;
    }
    return status;
}

static const struct reply *take_one(struct pipeline *p)
{
    const struct reply *reply = NULL;
    enum redis_status status = await_one(p, &reply);
    if (status != REDIS_OK_STATUS) {
        /* The command's server has refused it to the end, and no other command is under way. */
        bool refused =
            p->session->dispatcher != NULL && p->session->dispatcher->is_refused && p->awaited == 1;
        p->lost = true;
        p->awaited = 0;
        if ((p->writes && !refused) || p->applied) { /* even if err says that Redis refused one */
            p->err = STORAGE_UNKNOWN;
        }
        (void)pipeline_fail(p, status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN);
        return NULL;
    }
    p->awaited--;
    if (reply->type == REPLY_ERROR) {
        take_error(p, reply);
        return NULL;
    }
    if (p->writes) {
        p->applied = true;
        if (p->err != STORAGE_OK) {
            p->err = STORAGE_UNKNOWN; /* an earlier command failed, and this one did not */
        }
    }
    return reply;
}

static void take_rest(struct pipeline *p)
{
    while (p->awaited > 0) {
        (void)take_one(p);
    }
}

const struct reply *pipeline_take(struct pipeline *p)
{
    const struct reply *reply = p->awaited > 0 ? take_one(p) : NULL;
    if (p->err != STORAGE_OK) {
        take_rest(p);
        return NULL;
    }
    return reply;
}

bool pipeline_number(struct pipeline *p, uint64_t *ret)
{
    const struct reply *reply = pipeline_take(p);
    if (reply == NULL) {
        return false;
    }
    int64_t number = reply->type == REPLY_NIL ? 0 : reply_integer(reply, -1);
    if (number < 0) {
        return pipeline_foreign(p, "a key");
    }
    *ret = (uint64_t)number;
    return true;
}

const struct reply *pipeline_ask(struct pipeline *p, bool writes)
{
    return pipeline_send(p, writes) ? pipeline_take(p) : NULL;
}

/* ---- ends ---- */

bool pipeline_foreign(struct pipeline *p, const char *what)
{
    take_rest(p); /* an error among these replies may be the better reason */
    if (p->err == STORAGE_OK) {
        (void)snprintf(p->detail, sizeof(p->detail), "%s holds foreign data", what);
    }
    return pipeline_fail(p, STORAGE_REFUSED);
}

enum storage_err pipeline_end(struct pipeline *p, bool *ret_lost)
{
    take_rest(p);
    if (p->session->dispatcher != NULL) { /* drop commands that were begun and not sent */
        dispatcher_forget(p->session->dispatcher);
    }
    buffer_release(&p->out);
    *ret_lost = *ret_lost || p->lost;
    return p->err;
}

enum storage_err pipeline_answer(struct pipeline *p, struct storage_job *job, bool *ret_lost)
{
    enum storage_err err = pipeline_end(p, ret_lost);
    if (p->detail[0] != '\0') {
        (void)snprintf(job->detail, sizeof(job->detail), "%s", p->detail);
    }
    return err;
}

#include "storage/read/pipeline.h"

#include <stdio.h>

#include "storage/core/reply_fault.h"
#include "storage/redis/resp.h"

#define OUT_KEEP (64 * 1024)

void pipeline_init(struct pipeline *p, struct session *session, int64_t deadline_ms)
{
    *p = (struct pipeline){.session = session, .deadline_ms = deadline_ms, .err = STORAGE_OK};
    buffer_init(&p->out);
}

/* ---- sending ---- */

struct buffer *pipeline_command(struct pipeline *p, const char *name, size_t n)
{
    resp_head(&p->out, 1 + n);
    resp_text(&p->out, name);
    p->n++;
    return &p->out;
}

struct buffer *pipeline_script(struct pipeline *p, enum script script, size_t n_keys, size_t n_args)
{
    script_head(&p->out, &p->session->scripts, script, n_keys, n_args);
    p->n++;
    return &p->out;
}

bool pipeline_send(struct pipeline *p, bool writes)
{
    if (p->err == STORAGE_OK && p->n > 0) {
        if (redis_queue(p->session->redis, &p->out)) {
            p->awaited += p->n;
            p->writes = writes;
        } else {
            (void)pipeline_fail(p, STORAGE_NOMEM);
        }
    }
    buffer_clear(&p->out, OUT_KEEP);
    p->n = 0;
    return p->err == STORAGE_OK;
}

/* ---- taking ---- */

/* A script fails before it does anything, if at all: nothing of this command holds. */
static void take_error(struct pipeline *p, const struct reply *reply)
{
    enum storage_err err = reply_err(reply, &p->lost);
    if (p->err == STORAGE_OK && err != STORAGE_OOM) { /* that one's own text says what to do */
        (void)snprintf(p->detail, sizeof(p->detail), "%s", reply->text.p);
    }
    (void)pipeline_fail(p, err);
}

static const struct reply *take_one(struct pipeline *p)
{
    const struct reply *reply = NULL;
    enum redis_status status = redis_await(p->session->redis, p->deadline_ms, &reply);
    if (status != REDIS_OK_STATUS) {
        p->lost = true;
        p->awaited = 0;
        if (p->writes || p->applied) { /* also where an earlier one was refused */
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
            p->err = STORAGE_UNKNOWN; /* an earlier one failed, this one did not */
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
    take_rest(p); /* one of them may be the better reason */
    if (p->err == STORAGE_OK) {
        (void)snprintf(p->detail, sizeof(p->detail), "%s holds foreign data", what);
    }
    return pipeline_fail(p, STORAGE_REFUSED);
}

enum storage_err pipeline_end(struct pipeline *p, bool *ret_lost)
{
    take_rest(p);
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

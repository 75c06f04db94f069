#include "storage/read/pipeline.h"

#include <stdio.h>

#include "storage/core/reply_fault.h"

#define OUT_KEEP (64 * 1024)

void pipeline_init(struct pipeline *p, struct reader *reader, struct storage_job *job)
{
    *p = (struct pipeline){.reader = reader, .job = job, .err = STORAGE_OK};
    buffer_init(&p->out);
}

void pipeline_release(struct pipeline *p)
{
    buffer_release(&p->out);
}

static void fail(struct pipeline *p, enum storage_err err)
{
    if (p->err == STORAGE_OK) {
        p->err = err;
    }
}

bool pipeline_send(struct pipeline *p, bool writes)
{
    if (p->err == STORAGE_OK && p->n > 0) {
        if (p->out.failed || !redis_queue(p->reader->session.redis, &p->out)) {
            fail(p, p->applied ? STORAGE_UNKNOWN : STORAGE_NOMEM);
        } else {
            p->awaited = p->n;
            p->writes = writes;
        }
    }
    buffer_clear(&p->out, OUT_KEEP);
    p->n = 0;
    return p->err == STORAGE_OK;
}

/* Our scripts fail before they do anything, if at all: nothing of this one holds. */
static void take_error(struct pipeline *p, const struct reply *reply)
{
    enum storage_err err = reply_err(reply, &p->lost);
    if (p->err == STORAGE_OK && err != STORAGE_OOM) { /* whose text says what a caller is to know */
        reader_op_detail(p->job, reply);
    }
    fail(p, p->applied ? STORAGE_UNKNOWN : err);
}

static const struct reply *take_one(struct pipeline *p)
{
    const struct reply *reply = NULL;
    enum redis_status status = redis_await(p->reader->session.redis, p->job->deadline_ms, &reply);
    if (status != REDIS_OK_STATUS) {
        p->lost = true;
        p->awaited = 0;
        if (p->writes || p->applied) { /* also where an earlier one was refused */
            p->err = STORAGE_UNKNOWN;
        }
        fail(p, status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN);
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

const struct reply *pipeline_take(struct pipeline *p)
{
    const struct reply *reply = p->awaited > 0 ? take_one(p) : NULL;
    while (p->err != STORAGE_OK && p->awaited > 0) {
        (void)take_one(p);
    }
    return p->err == STORAGE_OK ? reply : NULL;
}

bool pipeline_foreign(struct pipeline *p)
{
    while (p->awaited > 0) {
        (void)take_one(p);
    }
    if (p->err == STORAGE_OK) {
        (void)snprintf(p->job->detail, sizeof(p->job->detail), "a filter's key holds foreign data");
    }
    fail(p, p->applied ? STORAGE_UNKNOWN : STORAGE_REFUSED);
    return false;
}

enum storage_err pipeline_end(struct pipeline *p, bool *ret_lost)
{
    while (p->awaited > 0) {
        (void)take_one(p);
    }
    *ret_lost = p->lost;
    pipeline_release(p);
    return p->err;
}

#include "storage/limit/limiter.h"

#include "storage/limit/limit_script.h"
#include "storage/session/reply_fault.h"

#define OUT_KEEP (64 * 1024)

void limiter_init(struct limiter *l, struct core *core)
{
    l->core = core;
    buffer_init(&l->out);
}

void limiter_release(struct limiter *l)
{
    buffer_release(&l->out);
}

/* ---- sending ---- */

/* Remember a job that is sent, and how many values its reply has. */
static void push_sent(struct limiter *l, struct storage_job *job, size_t n_values, bool last)
{
    l->sent[l->n_sent++] = (struct sent_job){job, (uint8_t)n_values, last};
}

/* Write a script's call for jobs of it. */
static void send_script(struct limiter *l, const struct session *session, enum limit_script script,
    struct storage_job **jobs, size_t n)
{
    if (n == 0) {
        return;
    }
    limit_script_write(&l->out, &session->scripts, &l->core->partitions, script, jobs, n);
    for (size_t i = 0; i < n; i++) {
        push_sent(l, jobs[i], limit_script_values(script), i + 1 == n);
    }
    atomic_fetch_add(&l->core->stats.limit_scripts, 1);
}

/* Write an UNLINK of everything about a limit's key. */
static void send_reset(struct limiter *l, struct storage_job *job)
{
    limit_script_write_reset(&l->out, &l->core->partitions, &job->u.limit_reset);
    push_sent(l, job, 0, true);
}

/* Jobs of one script, until they fill a call. */
struct gathered {
    struct storage_job *jobs[LIMIT_SCRIPT_JOBS_MAX];
    size_t n;
};

static void gather_job(
    struct limiter *l, const struct session *session, struct gathered *all, struct storage_job *job)
{
    enum limit_script script = limit_script_of(&job->u.limit);
    struct gathered *g = &all[script];
    g->jobs[g->n++] = job;
    if (g->n < limit_script_jobs_max[script] && !l->core->is_spread) {
        return;
    }
    send_script(l, session, script, g->jobs, g->n);
    g->n = 0;
}

bool limiter_write(struct limiter *l, const struct session *session, struct storage_job *jobs)
{
    struct gathered all[LIMIT_SCRIPTS];
    buffer_clear(&l->out, OUT_KEEP);
    l->n_taken = l->n_sent = 0;
    for (size_t i = 0; i < LIMIT_SCRIPTS; i++) {
        all[i].n = 0;
    }
    for (struct storage_job *job = jobs; job != NULL; job = jobs) {
        jobs = job->next;
        if (job->op == STORAGE_LIMIT_RESET) {
            send_reset(l, job);
        } else {
            gather_job(l, session, all, job);
        }
    }
    for (size_t i = 0; i < LIMIT_SCRIPTS; i++) {
        send_script(l, session, (enum limit_script)i, all[i].jobs, all[i].n);
    }
    return !l->out.failed;
}

/* ---- replies ---- */

/* The error of jobs whose script has got the error @reply.  A script that has failed half way may
 * have taken from the limit. */
static enum storage_err error_of(const struct reply *reply)
{
    bool ignored = false;
    enum storage_err err = reply_err(reply, &ignored);
    return reply_fault(reply) == REPLY_FAILED ? STORAGE_UNKNOWN : err;
}

static void read_state(struct limiter *l, struct limit_job *job, const struct reply *values)
{
    limit_script_read(job, values);
    if (!job->guard) {
        atomic_fetch_add(&l->core->stats.limit_checks, 1);
        atomic_fetch_add(&l->core->stats.limit_denied, job->state.allowed ? 0 : 1);
        atomic_fetch_add(&l->core->stats.limit_penalised, job->state.penalised ? 1 : 0);
    }
}

/* Note an error of a script that did not run, or failed half way. */
static void note_error(struct limiter *l, const struct reply *reply, bool again)
{
    atomic_fetch_add(&l->core->stats.redis_errors, 1);
    if (!reply_is_error(reply, "TRYAGAIN")) { /* that one only says that a slot is being moved */
        core_write_failed(l->core, reply_is_error(reply, "OOM") ? STORAGE_OOM : STORAGE_REFUSED);
    }
    if (!again) {
        core_notice(l->core, STORAGE_REFUSING, reply->text.p);
    }
}

/* Take what @reply has at @at for a job that is under way no more.  False: it is no such reply. */
static bool take_values(
    struct limiter *l, struct storage_job *job, const struct reply *reply, size_t at, size_t n)
{
    bool good = reply->type == REPLY_ARRAY ? reply->n >= at + n : reply->type == REPLY_INTEGER;
    if (job == NULL) {
        return good;
    }
    if (job->op == STORAGE_LIMIT) {
        good = good && reply->type == REPLY_ARRAY;
        if (good) {
            read_state(l, &job->u.limit, &reply->items[at]);
        }
    }
    job_done(job, good ? STORAGE_OK : STORAGE_UNKNOWN);
    return good;
}

bool limiter_take_reply(struct limiter *l, const struct reply *reply)
{
    bool failed = reply->type == REPLY_ERROR;
    enum reply_fault fault = failed ? reply_fault(reply) : REPLY_FAILED;
    bool again = failed && (fault == REPLY_RECONNECT || fault == REPLY_LATER);
    bool good = limiter_awaits(l) && fault != REPLY_RECONNECT; /* a reply to what was sent */
    size_t at = LIMIT_SCRIPT_HEAD;
    if (failed) {
        note_error(l, reply, again);
    }
    for (bool last = !limiter_awaits(l); !last;) {
        struct sent_job sent = l->sent[l->n_taken++];
        last = sent.last;
        if (!failed) {
            good = take_values(l, sent.job, reply, at, sent.n_values) && good;
        } else if (sent.job != NULL && again) {
            job_queue_append(&l->again, sent.job);
        } else if (sent.job != NULL) {
            job_done(sent.job, error_of(reply));
        }
        at += sent.n_values;
    }
    return good;
}

/* ---- how jobs end ---- */

void limiter_end(struct limiter *l, enum storage_err err)
{
    for (; limiter_awaits(l); l->n_taken++) {
        if (limiter_first(l) != NULL) {
            job_done(limiter_first(l), err);
        }
    }
}

void limiter_answer_late(struct limiter *l, int64_t now_ms)
{
    jobs_done(job_queue_take_late(&l->again, now_ms), STORAGE_LATE);
    for (size_t i = l->n_taken; i < l->n_sent; i++) {
        struct storage_job **job = &l->sent[i].job;
        if (*job != NULL && (*job)->deadline_ms <= now_ms) {
            job_done(*job, STORAGE_UNKNOWN);
            *job = NULL;
        }
    }
}

void limiter_write_one(
    struct core *core, const struct session *session, struct storage_job *job, struct buffer *out)
{
    if (job->op == STORAGE_LIMIT_RESET) {
        limit_script_write_reset(out, &core->partitions, &job->u.limit_reset);
    } else {
        limit_script_write(
            out, &session->scripts, &core->partitions, limit_script_of(&job->u.limit), &job, 1);
    }
}

struct storage_job *limiter_first(const struct limiter *l)
{
    return limiter_awaits(l) ? l->sent[l->n_taken].job : NULL;
}

bool limiter_awaits(const struct limiter *l)
{
    return l->n_taken < l->n_sent;
}

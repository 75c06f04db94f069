#include "storage/write/claims_batch.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/core/reply_fault.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define SETTLE_BYTES  (128 * 1024) /* answers in one script */
#define CONNECT_MS    1000
#define SILENCE_MS    5000 /* no reply for so long: the connection is dead, or as good as */
#define LEASE_MORE_MS 500  /* beyond the time by which the owner has answered */
#define TIDY_MAX      20000
#define KEEP_BYTES    (256 * 1024)

static struct claim *claim_of(const struct storage_job *job)
{
    return job->op == STORAGE_WRITE ? job->u.write.claim : job->u.claim;
}

/* ---- answers ---- */

static void done(struct storage_job *job, enum storage_err err)
{
    job->err = err;
    job->done(job);
}

void claims_fail(struct storage_job *job, enum storage_err err)
{
    switch ((enum claim_step)claim_of(job)->step) {
    case STEP_CLAIM:
        done(job, err);
        return;
    case STEP_FINISH:
        done(job, STORAGE_UNKNOWN);
        return;
    case STEP_RELEASE:
        done(job, job->err);
        return;
    }
}

void claims_sort_out(struct claims *c)
{
    int64_t now_ms = monotonic_ms();
    bool refusing = atomic_load(&c->core->refusing);
    bool differ = atomic_load(&c->core->settings_differ);
    size_t kept = 0;
    for (size_t i = 0; i < c->n_batch; i++) {
        struct storage_job *job = c->batch[i];
        struct claim *claim = claim_of(job);
        if (job->deadline_ms <= now_ms) {
            claims_fail(job, STORAGE_LATE);
        } else if ((refusing || differ) && claim->step != STEP_FINISH) {
            claims_fail(job, differ ? STORAGE_CONFIG : STORAGE_DOWN);
        } else if (claim->step == STEP_FINISH && c->session.redis != NULL &&
                   claim->epoch != c->epoch) {
            claim->epoch = c->epoch;
            if (!c->resubmit(c->resubmit_data, job)) {
                claims_fail(job, STORAGE_UNKNOWN);
            }
        } else {
            c->batch[kept++] = job;
        }
    }
    c->n_batch = kept;
}

static void take_claim(struct claims *c, struct storage_job *job, const struct reply *code,
    const struct reply *value, int64_t redis_ms)
{
    struct claim *claim = job->u.claim;
    int64_t outcome = reply_integer(code, -1);
    claim->outcome = (enum claim_outcome)outcome;
    if (outcome == CLAIM_MINE) {
        claim->gen_ms = reply_integer(value, 0);
        claim->until_ms = redis_ms + CLAIM_ATTEMPT_MS;
        if (claim->until_ms > claim->gen_ms + CLAIM_TTL_MS) {
            claim->until_ms = claim->gen_ms + CLAIM_TTL_MS;
        }
        claim->epoch = c->epoch;
        if (claim->gen_ms != redis_ms) { /* taken over: who had it may have sent something */
            claim->in_doubt = true;
        }
    } else if (outcome == CLAIM_REPLAY || outcome == CLAIM_DONE) {
        claim->replay = malloc(value->text.n + 1);
        if (claim->replay == NULL) {
            done(job, STORAGE_NOMEM);
            return;
        }
        memcpy(claim->replay, value->text.p, value->text.n);
        claim->replay_n = value->text.n;
    }
    done(job, STORAGE_OK);
}

/* The answer is stored: the claim answers from now on, and the markers need not live for long.  If
 * this is lost they only take room. */
static void tidy_up(struct claims *c, const struct storage_job *job)
{
    const struct partitions *partitions = &c->core->partitions;
    for (unsigned p = 0; p < partitions->n && c->n_tidy < TIDY_MAX; p++) {
        if ((job->parts_all >> p & 1) != 0) {
            struct key key;
            key_unit(&key, partitions->tag[p], &job->u.write.claim->key);
            resp_head(&c->tidy, 3);
            resp_text(&c->tidy, "PEXPIRE");
            resp_word(&c->tidy, key.p, key.n);
            resp_decimal(&c->tidy, CLAIM_MARKER_MS);
            c->n_tidy++;
        }
    }
}

static void take_settled(struct claims *c, struct storage_job *job, const struct reply *code)
{
    if (claim_of(job)->step == STEP_RELEASE) {
        done(job, job->err);
    } else if (reply_integer(code, 1) == 0) {
        tidy_up(c, job);
        done(job, STORAGE_OK);
    } else {
        done(job, STORAGE_UNKNOWN); /* the data was taken away: who asks again begins anew */
    }
}

/* A script was refused: nothing of it was done.  What waiting may help is put back. */
static void take_error(struct claims *c, const struct claim_run *run, const struct reply *reply)
{
    atomic_fetch_add(&c->core->stats.redis_errors, 1);
    enum reply_fault fault = reply_fault(reply);
    bool later = fault == REPLY_RECONNECT || fault == REPLY_LATER;
    bool oom = fault == REPLY_FULL;
    core_write_failed(c->core, oom ? STORAGE_OOM : STORAGE_REFUSED);
    for (size_t i = run->first; i < run->first + run->n; i++) {
        struct storage_job *job = c->batch[i];
        int step = claim_of(job)->step;
        if (later || step == STEP_FINISH) {
            claims_put_back(c, i, 1);
            c->hold = true;
        } else if (step == STEP_CLAIM) {
            if (!oom) {
                (void)snprintf(job->detail, sizeof(job->detail), "%s", reply->text.p);
            }
            claims_fail(job, oom ? STORAGE_OOM : STORAGE_REFUSED);
        } else {
            claims_fail(job, STORAGE_REFUSED);
        }
    }
}

static bool take_reply(struct claims *c, const struct claim_run *run, const struct reply *reply)
{
    bool claim = run->script == SCRIPT_CLAIM;
    if (reply->type == REPLY_ERROR) {
        take_error(c, run, reply);
        return reply_fault(reply) != REPLY_RECONNECT;
    }
    if (reply->type != REPLY_ARRAY || reply->n != (claim ? 2 + 2 * run->n : run->n)) {
        claims_put_back(c, run->first, run->n);
        return false;
    }
    int64_t redis_us = 0;
    if (claim) {
        redis_us =
            reply_integer(&reply->items[0], 0) * 1000000 + reply_integer(&reply->items[1], 0);
        core_time_seen(c->core, redis_us);
    }
    for (size_t i = 0; i < run->n; i++) {
        struct storage_job *job = c->batch[run->first + i];
        if (claim) {
            take_claim(c, job, &reply->items[2 + 2 * i], &reply->items[3 + 2 * i], redis_us / 1000);
        } else {
            take_settled(c, job, &reply->items[i]);
        }
    }
    return true;
}

/* ---- questions ---- */

static void put_claim(struct claims *c, const struct storage_job *job)
{
    const struct claim *claim = job->u.claim;
    resp_word(&c->args, claim->owner.bytes, sizeof(claim->owner.bytes));
    resp_word(&c->args, claim->body.bytes, sizeof(claim->body.bytes));
    resp_decimal(&c->args, job->deadline_ms - monotonic_ms() + LEASE_MORE_MS);
}

static void put_settle(struct claims *c, const struct storage_job *job)
{
    const struct claim *claim = claim_of(job);
    bool finish = claim->step == STEP_FINISH;
    char gen[24];
    int n = snprintf(gen, sizeof(gen), "%013lld", (long long)claim->gen_ms);
    resp_text(&c->args, finish ? "D" : "R");
    resp_word(&c->args, gen, (size_t)n);
    resp_word(&c->args, claim->owner.bytes, sizeof(claim->owner.bytes));
    resp_word(&c->args, claim->body.bytes, sizeof(claim->body.bytes));
    resp_word(&c->args, claim->answer.p, finish ? claim->answer.n : 0);
}

static void end_run(struct claims *c, struct claim_run *run, size_t end)
{
    bool claim = run->script == SCRIPT_CLAIM;
    run->n = end - run->first;
    script_head(
        &c->out, &c->session.scripts, run->script, run->n, claim ? 2 + 3 * run->n : 1 + 5 * run->n);
    buffer_append(&c->out, c->keys.p, c->keys.n);
    if (claim) {
        resp_decimal(&c->out, CLAIM_TTL_MS);
    }
    resp_decimal(&c->out, CLAIM_KEEP_MS);
    buffer_append(&c->out, c->args.p, c->args.n);
    c->out.failed = c->out.failed || c->keys.failed || c->args.failed;
    buffer_clear(&c->keys, KEEP_BYTES);
    buffer_clear(&c->args, KEEP_BYTES);
    c->n_runs++;
}

/* Claims first, then the others: each kind in a script of its own, or in several. */
static void group(struct claims *c)
{
    struct storage_job *settle[CLAIMS_BATCH_MAX];
    size_t n_charges = 0;
    size_t n_settle = 0;
    for (size_t i = 0; i < c->n_batch; i++) {
        if (claim_of(c->batch[i])->step == STEP_CLAIM) {
            c->batch[n_charges++] = c->batch[i];
        } else {
            settle[n_settle++] = c->batch[i];
        }
    }
    for (size_t i = 0; i < n_settle; i++) {
        c->batch[n_charges + i] = settle[i];
    }
}

static void encode(struct claims *c)
{
    buffer_clear(&c->out, KEEP_BYTES);
    buffer_clear(&c->keys, KEEP_BYTES);
    buffer_clear(&c->args, KEEP_BYTES);
    group(c);
    c->n_runs = 0;
    for (size_t i = 0; i < c->n_batch; i++) {
        const struct claim *claim = claim_of(c->batch[i]);
        enum script script = claim->step == STEP_CLAIM ? SCRIPT_CLAIM : SCRIPT_SETTLE;
        struct claim_run *run = &c->runs[c->n_runs];
        if (c->keys.n == 0) {
            *run = (struct claim_run){.script = script, .first = i};
        }
        struct key key;
        key_claim(&key, c->core->partitions.tag[claim_partition(&c->core->partitions, &claim->key)],
            &claim->key);
        resp_word(&c->keys, key.p, key.n);
        if (script == SCRIPT_CLAIM) {
            put_claim(c, c->batch[i]);
        } else {
            put_settle(c, c->batch[i]);
        }
        bool last = i + 1 == c->n_batch || !c->core->one_node || c->args.n >= SETTLE_BYTES ||
                    (script == SCRIPT_CLAIM) != (claim_of(c->batch[i + 1])->step == STEP_CLAIM);
        if (last) {
            end_run(c, run, i + 1);
        }
    }
    buffer_append(&c->out, c->tidy.p, c->tidy.n);
}

/* Until when Redis is waited for: nobody is answered late because another one is not. */
static int64_t patience_ms(const struct claims *c)
{
    int64_t until_ms = monotonic_ms() + SILENCE_MS;
    for (size_t i = 0; i < c->n_batch; i++) {
        until_ms = c->batch[i]->deadline_ms < until_ms ? c->batch[i]->deadline_ms : until_ms;
    }
    return until_ms;
}

void claims_disconnect(struct claims *c)
{
    session_close(&c->session);
    c->n_tidy = c->n_tidying = 0;
    buffer_clear(&c->tidy, KEEP_BYTES);
}

/* The answers to what was tidied up before.  Nobody waits for them, so they are taken when the next
 * ones are; had the thread waited, who came then would have been late. */
static bool take_tidied(struct claims *c, int64_t until_ms)
{
    const struct reply *reply = NULL;
    while (c->n_tidying > 0 && redis_await(c->session.redis, until_ms, &reply) == REDIS_OK_STATUS) {
        c->n_tidying--;
    }
    return c->n_tidying == 0;
}

/* What the socket does not take goes out with the next batch. */
static bool send_tidy(struct claims *c)
{
    bool ignored;
    return redis_send(c->session.redis, &ignored) == REDIS_OK_STATUS;
}

void claims_ask(struct claims *c)
{
    size_t n_tidy = c->n_tidy;
    encode(c);
    c->n_tidy = 0;
    buffer_clear(&c->tidy, KEEP_BYTES);
    bool ok = redis_queue(c->session.redis, &c->out);
    int64_t until_ms = patience_ms(c);
    ok = ok && (c->n_runs == 0 ? send_tidy(c) : take_tidied(c, until_ms));
    size_t runs = 0;
    for (; ok && runs < c->n_runs; runs++) {
        const struct reply *reply = NULL;
        if (redis_await(c->session.redis, until_ms, &reply) != REDIS_OK_STATUS) {
            break;
        }
        ok = take_reply(c, &c->runs[runs], reply);
    }
    ok = ok && runs == c->n_runs;
    c->n_tidying += n_tidy;
    for (size_t i = c->n_runs; i-- > runs;) {
        claims_put_back(c, c->runs[i].first, c->runs[i].n);
    }
    if (!ok) {
        claims_disconnect(c);
    }
}

void claims_connect(struct claims *c)
{
    char error[160];
    int64_t now_ms = monotonic_ms();
    int64_t until_ms = patience_ms(c);
    if (c->session.redis != NULL || !atomic_load(&c->core->ready) || until_ms <= now_ms) {
        return; /* somebody is late: he is answered first */
    }
    if (now_ms + CONNECT_MS < until_ms) {
        until_ms = now_ms + CONNECT_MS;
    }
    if (session_open(&c->session, c->core, until_ms, error, sizeof(error))) {
        c->epoch++;
    }
}

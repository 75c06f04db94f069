/* periods.c - the secrets of rotation periods in Redis: made, or learnt, for all processes. */
#include "storage/read/operation.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/read/late_periods.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define AT_ONCE 256 /* secrets that are asked for together */

/* A late period is noted before its secret is made, so that no event can be counted unnoted. */
static void note_late(struct pipeline *p, struct reader *reader, int64_t start_s)
{
    struct buffer *out = pipeline_command(p, 0, "SADD", 2);
    key_put(out, reader->core->partitions.tag[0], "late");
    resp_decimal(out, start_s);
}

/* Ask for the secret of a period, and for the time when it ends.  Redis keeps the secret that it
 * has, and answers with it; or Redis takes @ours, and answers nil. */
static void ask_secret(struct pipeline *p, struct reader *reader, int64_t start_s, int64_t gone_s,
    const struct secret *ours)
{
    char suffix[24];
    struct key named;
    int n = snprintf(suffix, sizeof(suffix), ":%" PRId64, start_s);
    struct slice key = key_fixed(
        &named, reader->core->partitions.tag[0], "secret", (struct slice){suffix, (size_t)n});
    struct buffer *out = pipeline_command(p, 0, "SET", 6);
    resp_slice(out, key);
    resp_word(out, ours->bytes, sizeof(ours->bytes));
    resp_text(out, "NX");
    resp_text(out, "GET");
    resp_text(out, "EXAT");
    resp_decimal(out, gone_s);
    out = pipeline_command(p, 0, "PEXPIRETIME", 1);
    resp_slice(out, key);
}

static bool take_secret(
    struct pipeline *p, struct reader *reader, int64_t start_s, struct secret *ours)
{
    int64_t gone_ms;
    const struct reply *reply = pipeline_take(p);
    if (reply == NULL) {
        return false;
    }
    if (reply->type == REPLY_TEXT && reply->text.n == SECRET_SIZE) {
        memcpy(ours->bytes, reply->text.p, SECRET_SIZE);
    } else if (reply->type != REPLY_NIL) {
        return pipeline_foreign(p, "a secret");
    }
    reply = pipeline_take(p);
    if (reply == NULL) {
        return false;
    }
    gone_ms = reply_integer(reply, -1);
    if (gone_ms <= 0) { /* the secret ended just now, between the two commands */
        return pipeline_fail(p, STORAGE_DOWN);
    }
    return period_secrets_learn(&reader->core->period_secrets, start_s, ours, gone_ms) ||
           pipeline_fail(p, STORAGE_NOMEM);
}

static bool ask_some(
    struct pipeline *p, struct reader *reader, const int64_t *starts, size_t n, int64_t now_s)
{
    struct secret ours[AT_ONCE];
    bool late[AT_ONCE];
    for (size_t i = 0; i < n; i++) {
        int64_t gone_s = period_late_s(reader->core->config.rotation, starts[i]);
        late[i] = gone_s <= now_s;
        period_secrets_propose(&reader->core->period_secrets, starts[i], &ours[i]);
        if (late[i]) {
            note_late(p, reader, starts[i]);
        }
        ask_secret(p, reader, starts[i], late[i] ? now_s + PERIOD_SECRET_LIFE_S : gone_s, &ours[i]);
    }
    bool ok = pipeline_send(p, false);
    for (size_t i = 0; ok && i < n; i++) {
        ok = (!late[i] || pipeline_take(p) != NULL) && take_secret(p, reader, starts[i], &ours[i]);
    }
    sodium_memzero(ours, sizeof(ours));
    return ok;
}

enum storage_err periods_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    const struct periods_job *asked = &job->u.periods;
    int64_t now_s = redis_clock_ms(&reader->core->clock) / 1000;
    struct pipeline p;
    bool ok = true;
    pipeline_init(&p, &reader->session, job->deadline_ms);
    pipeline_keep_order(&p);
    for (size_t i = 0; ok && i < asked->n; i += AT_ONCE) {
        size_t n = asked->n - i < AT_ONCE ? asked->n - i : AT_ONCE;
        ok = ask_some(&p, reader, asked->starts + i, n, now_s);
    }
    return pipeline_answer(&p, job, ret_lost);
}

static bool take_late(struct pipeline *p, struct core *core)
{
    const struct reply *reply = pipeline_ask(p, false);
    if (reply == NULL) {
        return false;
    }
    if (reply->type != REPLY_ARRAY) {
        return pipeline_foreign(p, "a set of periods");
    }
    int64_t *starts = malloc((reply->n + 1) * sizeof(*starts));
    for (size_t i = 0; starts != NULL && i < reply->n; i++) {
        starts[i] = reply_integer(&reply->items[i], 0);
    }
    bool ok = starts != NULL && period_secrets_set_late(&core->period_secrets, starts, reply->n);
    free(starts);
    return ok || pipeline_fail(p, STORAGE_NOMEM);
}

enum storage_err late_periods_learn(struct reader *reader, int64_t deadline_ms, bool *ret_lost)
{
    struct pipeline p;
    if (reader->core->config.rotation == ROTATE_NEVER) {
        return STORAGE_OK;
    }
    pipeline_init(&p, &reader->session, deadline_ms);
    key_put(pipeline_command(&p, 0, "SMEMBERS", 1), reader->core->partitions.tag[0], "late");
    (void)take_late(&p, reader->core);
    return pipeline_end(&p, ret_lost);
}

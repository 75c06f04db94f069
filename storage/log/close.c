#include "storage/log/close.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/index.h"
#include "storage/core/reply_fault.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define COUNT_MS       2000
#define COUNT_EVERY_MS 30000 /* where it did not help, it is not tried again and again */
#define CLOSED_AT_ONCE 64

void log_closer_release(struct log_closer *closer)
{
    log_progress_release(&closer->progress);
    free(closer->strays);
    *closer = (struct log_closer){.strays = NULL};
}

/* One call. */
struct closing {
    struct log_closer *closer;
    struct core *core;
    struct session *session;
    int64_t deadline_ms;
    struct buffer out;
    struct {
        char id[LOG_ID_TEXT + 1];
    } closed[CLOSED_AT_ONCE]; /* to be closed, then: that were closed */
    size_t n_asked, n_closed;
    enum storage_err err; /* why the last step that Redis refused was */
    bool lost;
};

static void put_key(struct closing *c, unsigned partition, const char *name, const char *rest)
{
    struct key key;
    key_fixed(&key, c->core->partitions.tag[partition], name, slice_of(rest));
    resp_word(&c->out, key.p, key.n);
}

static bool closing_ask(struct closing *c, size_t n, redis_take_fn *take)
{
    enum redis_status status =
        redis_ask_all(c->session->redis, &c->out, n, c->deadline_ms, take, c);
    c->lost = c->lost || status != REDIS_OK_STATUS;
    return !c->lost;
}

static bool note_error(struct closing *c, const struct reply *reply)
{
    if (reply->type != REPLY_ERROR) {
        return false;
    }
    c->err = reply_err(reply, &c->lost);
    return true;
}

static bool take_ignored(void *data, size_t i, const struct reply *reply)
{
    (void)i;
    (void)note_error(data, reply); /* what is left is a stray cursor */
    return true;
}

/* Delete the cursor of log @id in all partitions. */
static size_t put_delete_cursors(struct closing *c, const char *id)
{
    for (unsigned p = 0; p < c->core->partitions.n; p++) {
        resp_head(&c->out, 3);
        resp_text(&c->out, "HDEL");
        put_key(c, p, "state", "");
        resp_word(&c->out, id, LOG_ID_TEXT);
    }
    return c->core->partitions.n;
}

/* ---- logs ---- */

static bool is_silent(struct closing *c, const struct log_head *head)
{
    return strcmp(head->id, c->closer->own) == 0 ||
           redis_clock_ms(&c->core->clock) - head->time_ms >= LOG_SILENCE_MS;
}

static bool take_closed(void *data, size_t i, const struct reply *reply)
{
    struct closing *c = data;
    if (!note_error(c, reply) && reply_integer(reply, 0) == 1) {
        c->closed[c->n_closed++] = c->closed[i]; /* n_closed <= i */
    }
    return true;
}

/* Close the silent logs that are counted.  False: the connection is lost. */
static bool close_counted(struct closing *c, bool *ret_uncounted)
{
    const struct log_progress *progress = &c->closer->progress;
    for (size_t i = 0; i < progress->n && c->n_asked < CLOSED_AT_ONCE; i++) {
        const struct log_standing *log = &progress->logs[i];
        if (!is_silent(c, &log->head)) {
            continue;
        }
        if (log->counted < log->head.n) {
            *ret_uncounted = true;
            continue;
        }
        char head[80];
        int n = snprintf(head, sizeof(head), "%" PRIu64 " %s %" PRId64, log->head.n, log->head.era,
            log->head.time_ms);
        script_head(&c->out, &c->session->scripts, SCRIPT_CLOSE_LOG, 2, 2);
        put_key(c, 0, "heads", "");
        put_key(c, 0, "log:", log->head.id);
        resp_word(&c->out, log->head.id, LOG_ID_TEXT);
        resp_word(&c->out, head, (size_t)n);
        memcpy(c->closed[c->n_asked++].id, log->head.id, LOG_ID_TEXT + 1);
    }
    return c->n_asked == 0 || closing_ask(c, c->n_asked, take_closed);
}

static bool clean_closed(struct closing *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_closed; i++) {
        n += put_delete_cursors(c, c->closed[i].id);
    }
    return n == 0 || closing_ask(c, n, take_ignored);
}

/* ---- cursors without a head ---- */

static struct stray_cursor *find_stray(struct log_closer *closer, const char *id)
{
    for (size_t i = 0; i < closer->n_strays; i++) {
        if (memcmp(closer->strays[i].id, id, LOG_ID_TEXT) == 0) {
            return &closer->strays[i];
        }
    }
    return NULL;
}

/* Every cursor counts as a stray until its head is seen. */
static bool take_fields(void *data, size_t i, const struct reply *reply)
{
    struct closing *c = data;
    struct log_closer *closer = c->closer;
    (void)i;
    if (note_error(c, reply)) {
        return true;
    }
    for (size_t f = 0; reply->type == REPLY_ARRAY && f < reply->n; f++) {
        struct slice name = reply->items[f].text;
        if (!log_id_is(name)) {
            continue;
        }
        struct stray_cursor *stray = find_stray(closer, name.p);
        if (stray == NULL) {
            if (!array_reserve(&closer->strays, &closer->capacity, closer->n_strays,
                    sizeof(*closer->strays))) {
                return true; /* another time */
            }
            stray = &closer->strays[closer->n_strays++];
            *stray = (struct stray_cursor){.seen_ms = monotonic_ms()};
            memcpy(stray->id, name.p, LOG_ID_TEXT);
        }
        stray->is_seen = true;
    }
    return true;
}

/* Read all cursors.  The heads are read after them: a log is registered before it has a cursor. */
static bool read_cursors(struct closing *c)
{
    struct log_closer *closer = c->closer;
    if (closer->connection != c->session->n_opened) {
        closer->connection = c->session->n_opened; /* Redis may have gone back */
        closer->n_strays = 0;
    }
    for (size_t i = 0; i < closer->n_strays; i++) {
        closer->strays[i].is_seen = false;
    }
    for (unsigned p = 0; p < c->core->partitions.n; p++) {
        resp_head(&c->out, 2);
        resp_text(&c->out, "HKEYS");
        put_key(c, p, "state", "");
    }
    return closing_ask(c, c->core->partitions.n, take_fields);
}

/* Keep the strays that have no head; delete those of them that were strays long enough ago, too. */
static bool clean_strays(struct closing *c)
{
    struct log_closer *closer = c->closer;
    int64_t before_ms = monotonic_ms() - atomic_load(&c->core->go_back_ms);
    size_t kept = 0;
    size_t n = 0;
    for (size_t i = 0; i < closer->n_strays; i++) {
        struct stray_cursor stray = closer->strays[i];
        if (!stray.is_seen || log_progress_find(&closer->progress, stray.id) != NULL) {
            continue;
        }
        if (stray.is_old && stray.seen_ms <= before_ms) {
            n += put_delete_cursors(c, stray.id);
            continue;
        }
        stray.is_old = true;
        closer->strays[kept++] = stray;
    }
    closer->n_strays = kept;
    return n == 0 || closing_ask(c, n, take_ignored);
}

bool log_close_silent(
    struct log_closer *closer, struct core *core, struct session *session, int64_t deadline_ms)
{
    struct closing c = {
        .closer = closer, .core = core, .session = session, .deadline_ms = deadline_ms};
    bool uncounted = false;
    bool read = false;
    if (read_cursors(&c)) {
        enum storage_err err =
            log_progress_read(&closer->progress, core, session, deadline_ms, &c.lost);
        read = err == STORAGE_OK;
    }
    if (read && close_counted(&c, &uncounted) && clean_closed(&c)) {
        (void)clean_strays(&c);
    }
    buffer_release(&c.out);
    int64_t now_ms = monotonic_ms();
    if (!c.lost && uncounted && now_ms >= closer->next_count_ms) {
        enum storage_err err = core_catch_up(core, monotonic_us(), now_ms + COUNT_MS);
        closer->next_count_ms = err == STORAGE_OK ? 0 : now_ms + COUNT_EVERY_MS;
    }
    return !c.lost;
}

void log_close_own(struct core *core, const char *id, int64_t deadline_ms)
{
    struct session session = {.redis = NULL};
    struct log_closer closer = {.strays = NULL};
    char error[160];
    if (id[0] == '\0' || !session_open(&session, core, deadline_ms, error, sizeof(error))) {
        return;
    }
    memcpy(closer.own, id, sizeof(closer.own));
    (void)!log_close_silent(&closer, core, &session, deadline_ms);
    session_close(&session);
    log_closer_release(&closer);
}

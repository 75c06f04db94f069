#include "storage/log/close.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/index.h"
#include "storage/cluster/topology.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/asks.h"
#include "storage/session/replicated.h"
#include "storage/session/reply_fault.h"

#define COUNT_MS       2000  /* folds may take so long to count what a silent log has */
#define COUNT_EVERY_MS 30000 /* folds that have failed are asked again after so long */
#define CLOSED_AT_ONCE 64    /* a call closes so many logs at most */
#define SILENCE_MS     3000  /* a connection that is silent for so long is taken for dead */

void log_closer_release(struct log_closer *closer)
{
    log_progress_release(&closer->progress);
    free(closer->strays.all);
    free(closer->counted.all);
    if (closer->session.dispatcher != NULL) {
        dispatcher_release(&closer->dispatcher);
    }
    *closer = (struct log_closer){.stood_us = 0};
}

/* What one call needs. */
struct closing {
    struct log_closer *closer;
    struct core *core;
    struct session *session;
    /* The process ends: its own logs are closed, although their writers were heard of just now.
     * NULL: only silent logs are closed. */
    struct unfolded *own;
    int64_t deadline_ms;
    int64_t now_ms;
    struct asks asks;
    bool lost;
};

/* Send c->asks, and wait for the replies.  False: a connection is lost. */
static bool closing_ask(struct closing *c, redis_take_fn *take)
{
    enum redis_status status = asks_run(&c->asks, c->deadline_ms, take, c);
    c->lost = c->lost || status != REDIS_OK_STATUS;
    return !c->lost;
}

/* Is @reply an error?  Notes if the connection must be given up. */
static bool note_error(struct closing *c, const struct reply *reply)
{
    if (reply->type != REPLY_ERROR) {
        return false;
    }
    (void)!reply_err(reply, &c->lost);
    return true;
}

/* A command that was refused is sent again at a later look. */
static bool take_ignored(void *data, size_t i, const struct reply *reply)
{
    (void)i;
    (void)note_error(data, reply);
    return true;
}

/* ---- what must be seen twice in the same state ---- */

/* Was @log seen in its state at an earlier look, the first time @apart_ms ago or earlier? */
static bool stands(const struct closing *c, const struct watched_log *log, int64_t apart_ms)
{
    return log->since_ms < c->now_ms && c->now_ms - log->since_ms >= apart_ms;
}

/* Note in @logs that the log with @head is seen at this look.  NULL: out of memory. */
static const struct watched_log *watch(
    const struct closing *c, struct watched_logs *logs, const struct log_head *head)
{
    size_t i = 0;
    while (i < logs->n && strcmp(logs->all[i].head.id, head->id) != 0) {
        i++;
    }
    if (!array_reserve(&logs->all, &logs->capacity, i, sizeof(*logs->all))) {
        return NULL;
    }
    struct watched_log *log = &logs->all[i];
    if (i == logs->n || log->head.n != head->n || log->head.time_ms != head->time_ms) {
        *log = (struct watched_log){.head = *head, .since_ms = monotonic_ms()};
        logs->n += i == logs->n;
    }
    log->seen_ms = c->now_ms;
    return log;
}

/* ---- logs ---- */

static bool is_own(const struct closing *c, const char *id)
{
    return c->own != NULL && unfolded_is_own(c->own, id);
}

static bool is_silent(const struct closing *c, const struct log_head *head)
{
    return is_own(c, head->id) || redis_clock_ms(&c->core->clock) - head->time_ms >= LOG_SILENCE_MS;
}

static void put_close(struct closing *c, const struct log_head *is)
{
    char head[80];
    struct key key;
    unsigned partition = core_log_partition(c->core, is->place);
    const char *tag = c->core->partitions.tag[partition];
    struct buffer *out = asks_begin(&c->asks, partition);
    int n = snprintf(head, sizeof(head), "%" PRIu64 " %s %" PRId64, is->n, is->era, is->time_ms);
    script_head(out, &c->session->scripts, SCRIPT_CLOSE_LOG, 2, 2);
    key_put(out, tag, "heads");
    resp_slice(out, key_fixed(&key, tag, "log:", slice_of(is->id)));
    resp_word(out, is->id, LOG_ID_TEXT);
    resp_word(out, head, (size_t)n);
}

/* Is the log, all of which is counted, counted for good?  In a cluster that takes until no server
 * can go back any more behind the look that saw the log counted first. */
static bool is_for_good(struct closing *c, const struct log_head *head)
{
    if (!c->core->is_spread || is_own(c, head->id)) {
        return true;
    }
    const struct watched_log *log = watch(c, &c->closer->counted, head);
    return log != NULL && stands(c, log, core_apart_ms(c->core));
}

/* Forget the logs that were not seen at this look. */
static void forget_unseen(const struct closing *c, struct watched_logs *logs)
{
    size_t kept = 0;
    for (size_t i = 0; i < logs->n; i++) {
        if (logs->all[i].seen_ms == c->now_ms) {
            logs->all[kept++] = logs->all[i];
        }
    }
    logs->n = kept;
}

/* Close the silent logs that are counted.  *ret_uncounted becomes true if one is not counted.
 * False: the connection is lost. */
static bool close_counted(struct closing *c, bool *ret_uncounted)
{
    const struct heads *logs = &c->closer->progress.logs;
    for (size_t i = 0; i < logs->n && c->asks.n < CLOSED_AT_ONCE; i++) {
        const struct log_head *log = &logs->all[i];
        if (!is_silent(c, log)) {
            continue;
        }
        if (log->counted < log->n) {
            *ret_uncounted = true;
        } else if (is_for_good(c, log)) {
            put_close(c, log);
        }
    }
    return c->asks.n == 0 || closing_ask(c, take_ignored);
}

/* ---- cursors without a head ---- */

/* Note every cursor as a stray: the heads, which are read later, take it from the list. */
static bool take_fields(void *data, size_t i, const struct reply *reply)
{
    struct closing *c = data;
    (void)i;
    if (note_error(c, reply)) {
        return true;
    }
    for (size_t f = 0; reply->type == REPLY_ARRAY && f < reply->n; f++) {
        struct slice name = reply->items[f].text;
        if (log_id_is(name)) {
            struct log_head no_head = {.n = 0};
            memcpy(no_head.id, name.p, LOG_ID_TEXT);
            (void)watch(c, &c->closer->strays, &no_head);
        }
    }
    return true;
}

/* If the connections are others than at the last look, Redis may have gone back: forget what was
 * seen. */
static void forget_if_changed(struct closing *c)
{
    struct log_closer *closer = c->closer;
    if (closer->stood_us != session_stands_since(c->session)) {
        closer->strays.n = closer->counted.n = 0;
    }
    closer->stood_us = session_stands_since(c->session);
}

/* Read all cursors.  The heads are read after them: a log is registered before it has a cursor. */
static bool read_cursors(struct closing *c)
{
    forget_if_changed(c);
    for (unsigned p = 0; p < c->core->partitions.n; p++) {
        (void)asks_command(&c->asks, c->core, p, "HKEYS", "state", 0);
    }
    return closing_ask(c, take_fields);
}

/* Delete the cursor of log @id in all partitions. */
static void put_delete_cursors(struct closing *c, const char *id)
{
    for (unsigned p = 0; p < c->core->partitions.n; p++) {
        resp_word(asks_command(&c->asks, c->core, p, "HDEL", "state", 1), id, LOG_ID_TEXT);
    }
}

/* Delete the cursors that have been strays for long enough, and remember the other strays. */
static void clean_strays(struct closing *c)
{
    struct watched_logs *strays = &c->closer->strays;
    int64_t apart_ms = core_apart_ms(c->core);
    if (c->core->is_spread && apart_ms < LOG_CURSOR_KEPT_MS) {
        apart_ms = LOG_CURSOR_KEPT_MS;
    }
    size_t kept = 0;
    forget_unseen(c, strays);
    for (size_t i = 0; i < strays->n; i++) {
        const struct watched_log *stray = &strays->all[i];
        if (heads_find(&c->closer->progress.logs, stray->head.id, 0) != NULL) {
            continue;
        }
        if (stands(c, stray, apart_ms)) {
            put_delete_cursors(c, stray->head.id);
        } else {
            strays->all[kept++] = *stray;
        }
    }
    strays->n = kept;
    if (c->asks.n > 0) {
        (void)closing_ask(c, take_ignored);
    }
}

/* ---- a look ---- */

/* Begin a call.  In a cluster the closer has connections of its own.  Those of log_close_own() are
 * not given up when the process stops.  False: there are none yet. */
static bool closing_begin(struct closing *c, struct session *session)
{
    struct log_closer *closer = c->closer;
    const struct redis_look look = {c->own == NULL ? core_runs : NULL, c->core, SILENCE_MS};
    c->now_ms = monotonic_ms();
    c->session = session;
    if (c->core->is_spread) {
        if (closer->session.dispatcher == NULL) {
            dispatcher_init(&closer->dispatcher, c->core, &look);
            closer->session.dispatcher = &closer->dispatcher;
        }
        c->session = &closer->session;
    }
    c->asks = asks_to(c->session);
    return !c->core->is_spread || session_by_dispatcher(c->session, c->core);
}

static bool read_logs(struct closing *c)
{
    return log_progress_read(&c->closer->progress, c->core, c->session, c->deadline_ms, &c->lost) ==
           STORAGE_OK;
}

/* Did the connections stand through all that was read? */
static bool has_stood(const struct closing *c)
{
    return c->closer->stood_us == session_stands_since(c->session);
}

bool log_close_silent(
    struct log_closer *closer, struct core *core, struct session *session, int64_t deadline_ms)
{
    struct closing c = {.closer = closer, .core = core, .deadline_ms = deadline_ms};
    bool uncounted = false;
    if (!closing_begin(&c, session)) {
        return true; /* a later call tries again */
    }
    if (!read_cursors(&c) || !read_logs(&c) || !has_stood(&c)) {
        closer->strays.n = 0; /* some of these may have heads */
    } else if (close_counted(&c, &uncounted)) {
        forget_unseen(&c, &closer->counted);
        clean_strays(&c);
    }
    int64_t now_ms = monotonic_ms();
    if (!c.lost && uncounted && now_ms >= closer->next_count_ms) {
        enum storage_err err = core_catch_up(core, monotonic_us(), now_ms + COUNT_MS);
        closer->next_count_ms = err == STORAGE_OK ? 0 : now_ms + COUNT_EVERY_MS;
    }
    return !c.lost || core->is_spread;
}

/* ---- the process ends ---- */

/* In a cluster, do replicas have what all @servers have counted? */
static bool is_replicated(struct closing *c, const struct part_set *servers)
{
    unsigned n = c->core->config.ack_replicas > 0 ? c->core->config.ack_replicas : 1;
    int64_t left_ms = c->deadline_ms - monotonic_ms();
    struct part_set acked;
    c->closer->stood_us = session_stands_since(c->session);
    return left_ms > 0 &&
           replicated_ask(c->core, c->session, servers, n, left_ms, c->deadline_ms, &acked) ==
               REDIS_OK_STATUS &&
           memcmp(servers, &acked, sizeof(acked)) == 0 && has_stood(c);
}

void log_close_own(struct core *core, struct unfolded *unfolded, int64_t deadline_ms)
{
    struct session session = {.redis = NULL};
    struct log_closer closer = {.stood_us = 0};
    struct closing c = {
        .closer = &closer, .core = core, .own = unfolded, .deadline_ms = deadline_ms};
    struct part_set servers;
    bool ignored = false;
    bool is_there =
        core->is_spread
            ? servers_each(core, &servers) && topology_n_unserved(core->topology) == 0
            : unfolded->logs[0].id[0] != '\0' && session_open(&session, core, deadline_ms);
    if (is_there && closing_begin(&c, &session) && read_logs(&c) &&
        (!core->is_spread || is_replicated(&c, &servers))) {
        (void)close_counted(&c, &ignored);
    }
    session_close(&session);
    log_closer_release(&closer);
}

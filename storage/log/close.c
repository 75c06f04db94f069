#include "storage/log/close.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/core/asks.h"
#include "storage/core/replicated.h"
#include "storage/core/reply_fault.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define COUNT_MS       2000
#define COUNT_EVERY_MS 30000 /* where it did not help, it is not tried again and again */
#define CLOSED_AT_ONCE 64
#define SILENCE_MS     3000

void log_closer_release(struct log_closer *closer)
{
    log_progress_release(&closer->progress);
    watched_logs_release(&closer->strays);
    watched_logs_release(&closer->counted);
    if (closer->session.dispatcher != NULL) {
        dispatcher_release(&closer->dispatcher);
    }
    *closer = (struct log_closer){.own = NULL};
}

/* One call. */
struct closing {
    struct log_closer *closer;
    struct core *core;
    struct session *session;
    int64_t deadline_ms;
    struct buffer out;
    struct asks asks;
    struct {
        char id[LOG_ID_TEXT + 1];
    } closed[CLOSED_AT_ONCE]; /* to be closed, then: that were closed */
    size_t n_asked, n_closed;
    bool lost;
};

static bool closing_ask(struct closing *c, redis_take_fn *take)
{
    enum redis_status status = asks_run(&c->asks, c->deadline_ms, take, c);
    c->lost = c->lost || status != REDIS_OK_STATUS;
    return !c->lost;
}

static bool note_error(struct closing *c, const struct reply *reply)
{
    if (reply->type != REPLY_ERROR) {
        return false;
    }
    (void)!reply_err(reply, &c->lost);
    return true;
}

static bool take_ignored(void *data, size_t i, const struct reply *reply)
{
    (void)i;
    (void)note_error(data, reply); /* what is left is a stray cursor */
    return true;
}

/* Delete the cursor of log @id in all partitions. */
static void put_delete_cursors(struct closing *c, const char *id)
{
    for (unsigned p = 0; p < c->core->partitions.n; p++) {
        resp_word(asks_command(&c->asks, c->core, p, "HDEL", "state", 1), id, LOG_ID_TEXT);
    }
}

/* ---- logs ---- */

static bool is_own(const struct closing *c, const char *id)
{
    return c->closer->own != NULL && unfolded_is_own(c->closer->own, id);
}

static bool is_silent(struct closing *c, const struct log_head *head)
{
    return is_own(c, head->id) || redis_clock_ms(&c->core->clock) - head->time_ms >= LOG_SILENCE_MS;
}

static bool take_closed(void *data, size_t i, const struct reply *reply)
{
    struct closing *c = data;
    if (!note_error(c, reply) && reply_integer(reply, 0) == 1) {
        c->closed[c->n_closed++] = c->closed[i]; /* n_closed <= i */
    }
    return true;
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

/* In a cluster a log is counted for good that has been so for as long as a server can go back. */
static bool is_for_good(struct closing *c, const struct log_head *head)
{
    if (!c->core->is_spread || is_own(c, head->id)) {
        return true;
    }
    int64_t now_ms = monotonic_ms();
    const struct watched_log *log = watched_logs_see(&c->closer->counted, head, now_ms);
    return log != NULL && watched_log_stands(log, now_ms, core_apart_ms(c->core));
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
        if (is_for_good(c, &log->head)) {
            put_close(c, &log->head);
            memcpy(c->closed[c->n_asked++].id, log->head.id, LOG_ID_TEXT + 1);
        }
    }
    return c->n_asked == 0 || closing_ask(c, take_closed);
}

static bool clean_closed(struct closing *c)
{
    for (size_t i = 0; !c->core->is_spread && i < c->n_closed; i++) {
        put_delete_cursors(c, c->closed[i].id);
    }
    return c->asks.n == 0 || closing_ask(c, take_ignored); /* else they become strays */
}

/* ---- cursors without a head ---- */

/* Every cursor counts as a stray until its head is seen. */
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
            (void)watched_logs_see(&c->closer->strays, &no_head, monotonic_ms());
        }
    }
    return true;
}

/* Over other connections than the last time Redis may have gone back. */
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
    struct watched_logs *strays = &c->closer->strays;
    forget_if_changed(c);
    for (size_t i = 0; i < strays->n; i++) { /* a look that failed may have seen them */
        strays->all[i].is_seen = false;
    }
    for (unsigned p = 0; p < c->core->partitions.n; p++) {
        (void)asks_command(&c->asks, c->core, p, "HKEYS", "state", 0);
    }
    return closing_ask(c, take_fields);
}

/* Keep the strays that have no head; delete those of them that were strays long enough ago, too. */
static bool clean_strays(struct closing *c)
{
    struct watched_logs *strays = &c->closer->strays;
    int64_t apart = core_apart_ms(c->core);
    apart = c->core->is_spread && apart < LOG_CURSOR_KEPT_MS ? LOG_CURSOR_KEPT_MS : apart;
    int64_t now_ms = monotonic_ms();
    for (size_t i = 0; i < strays->n; i++) {
        struct watched_log *stray = &strays->all[i];
        bool has_head = log_progress_find(&c->closer->progress, stray->head.id) != NULL;
        bool is_left = stray->is_seen && !has_head && watched_log_stands(stray, now_ms, apart);
        if (is_left) {
            put_delete_cursors(c, stray->head.id);
        }
        stray->is_seen = stray->is_seen && !has_head && !is_left;
    }
    watched_logs_keep(strays);
    return c->asks.n == 0 || closing_ask(c, take_ignored);
}

/* In a cluster the closer has connections of its own. */
static struct session *closer_begin(
    struct log_closer *closer, struct core *core, struct session *session)
{
    const struct redis_look look = {core_runs, core, SILENCE_MS};
    if (!core->is_spread) {
        return session;
    }
    if (closer->session.dispatcher == NULL) {
        dispatcher_init(&closer->dispatcher, core, &look);
        closer->session.dispatcher = &closer->dispatcher;
    }
    return session_by_dispatcher(&closer->session, core) ? &closer->session : NULL;
}

/* Did the connections stand through all that was read? */
static bool closer_stood(const struct closing *c)
{
    return c->closer->stood_us == session_stands_since(c->session);
}

bool log_close_silent(
    struct log_closer *closer, struct core *core, struct session *session, int64_t deadline_ms)
{
    struct closing c = {.closer = closer,
        .core = core,
        .session = closer_begin(closer, core, session),
        .deadline_ms = deadline_ms};
    bool uncounted = false;
    bool read = false;
    if (c.session == NULL) {
        return true; /* another time */
    }
    c.asks = asks_to(c.session, &c.out);
    if (read_cursors(&c)) {
        enum storage_err err =
            log_progress_read(&closer->progress, core, c.session, deadline_ms, &c.lost);
        read = err == STORAGE_OK && closer_stood(&c);
    }
    if (!read) {
        closer->strays.n = 0; /* their heads may be there */
    }
    if (read && close_counted(&c, &uncounted) && clean_closed(&c)) {
        watched_logs_keep(&closer->counted);
        (void)clean_strays(&c);
    }
    buffer_release(&c.out);
    int64_t now_ms = monotonic_ms();
    /* Own logs are closed when the process stops: then nobody is waited for. */
    if (!c.lost && uncounted && closer->own == NULL && now_ms >= closer->next_count_ms) {
        enum storage_err err = core_catch_up(core, monotonic_us(), now_ms + COUNT_MS);
        closer->next_count_ms = err == STORAGE_OK ? 0 : now_ms + COUNT_EVERY_MS;
    }
    return !c.lost || core->is_spread;
}

/* Of a cluster, over @closer's own connections, which no stop interrupts. */
static void close_own_spread(struct log_closer *closer, struct core *core, int64_t deadline_ms)
{
    unsigned n = core->config.ack_replicas > 0 ? core->config.ack_replicas : 1;
    struct part_set servers;
    struct part_set acked;
    bool ignored = false;
    dispatcher_init(&closer->dispatcher, core, &(struct redis_look){.silence_ms = SILENCE_MS});
    closer->session.dispatcher = &closer->dispatcher;
    struct closing c = {
        .closer = closer, .core = core, .session = &closer->session, .deadline_ms = deadline_ms};
    c.asks = asks_to(c.session, &c.out);
    bool read =
        servers_each(core, &servers) && topology_n_unserved(core->topology) == 0 &&
        session_by_dispatcher(c.session, core) &&
        log_progress_read(&closer->progress, core, c.session, deadline_ms, &c.lost) == STORAGE_OK;
    closer->stood_us = session_stands_since(c.session);
    int64_t left_ms = deadline_ms - monotonic_ms();
    if (read && left_ms > 0 &&
        replicated_ask(core, c.session, &servers, n, left_ms, deadline_ms, &acked) ==
            REDIS_OK_STATUS &&
        memcmp(&servers, &acked, sizeof(acked)) == 0 && closer_stood(&c)) {
        (void)close_counted(&c, &ignored);
    }
    buffer_release(&c.out);
}

void log_close_own(struct core *core, struct unfolded *unfolded, int64_t deadline_ms)
{
    struct session session = {.redis = NULL};
    struct log_closer closer = {.own = unfolded};
    if (core->is_spread) {
        close_own_spread(&closer, core, deadline_ms);
    } else if (unfolded->logs[0].id[0] != '\0' && session_open(&session, core, deadline_ms)) {
        (void)!log_close_silent(&closer, core, &session, deadline_ms);
        session_close(&session);
    }
    log_closer_release(&closer);
}

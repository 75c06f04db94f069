#include "storage/read/log_progress.h"

#include <stdio.h>
#include <string.h>

#include "storage/cluster/topology.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/asks.h"
#include "storage/session/reply_fault.h"

void log_progress_release(struct log_progress *progress)
{
    heads_release(&progress->logs);
    heads_release(&progress->next);
}

/* ---- one round trip ---- */

struct reading {
    struct log_progress *progress;
    struct core *core;
    struct log_head *asked; /* the logs whose cursors are read */
    size_t n_asked;
    size_t n_heads;       /* the first replies have the heads, one register each */
    bool has_time;        /* the reply behind the heads has the clock */
    bool has_ids;         /* the reply behind the clock has the ids of partition 0 */
    enum storage_err err; /* the first fault */
    bool lost;
};

static enum storage_err foreign(struct reading *r, const char *what)
{
    (void)snprintf(r->progress->detail, sizeof(r->progress->detail), "%s holds foreign data", what);
    return STORAGE_REFUSED;
}

static enum storage_err take_heads(struct reading *r, unsigned place, const struct reply *reply)
{
    enum storage_err err = heads_add(&r->progress->next, place, reply);
    return err == STORAGE_REFUSED ? foreign(r, "heads") : err;
}

static enum storage_err take_cursors(struct reading *r, const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY || reply->n != r->n_asked) {
        return foreign(r, "a partition's state");
    }
    for (size_t i = 0; i < reply->n; i++) {
        if (!log_cursor_least(&reply->items[i], &r->asked[i].counted)) {
            return foreign(r, "a cursor");
        }
    }
    return STORAGE_OK;
}

/* Take the ids of partition 0, in the order of ask_ids(). */
static enum storage_err take_ids(struct reading *r, const struct reply *reply)
{
    struct log_progress *p = r->progress;
    if (reply->type != REPLY_ARRAY) {
        return foreign(r, "a partition's state");
    }
    p->ids_n = 0;
    for (size_t i = 0; i < reply->n && reply->items[i].type == REPLY_TEXT; i++) {
        struct slice id = reply->items[i].text;
        if (id.n + 1 > sizeof(p->ids) - p->ids_n) {
            return foreign(r, "a partition's state");
        }
        memcpy(p->ids + p->ids_n, id.p, id.n);
        p->ids[p->ids_n + id.n] = ' ';
        p->ids_n += id.n + 1;
    }
    return STORAGE_OK;
}

static enum storage_err take_one(struct reading *r, size_t i, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR) {
        (void)snprintf(r->progress->detail, sizeof(r->progress->detail), "%s", reply->text.p);
        return reply_err(reply, &r->lost);
    }
    if (i < r->n_heads) {
        return take_heads(r, (unsigned)i, reply);
    }
    if (i == r->n_heads && r->has_time) {
        r->progress->time_us = reply_time_us(reply);
        core_time_seen(r->core, r->progress->time_us);
        return STORAGE_OK;
    }
    if (i == r->n_heads + 1 && r->has_ids) {
        return take_ids(r, reply);
    }
    return r->n_asked > 0 ? take_cursors(r, reply) : STORAGE_OK;
}

/* Take each reply, so that none is left on the connection.  After the first fault nothing else is
 * learnt than that the connection is lost. */
static bool take_reply(void *data, size_t i, const struct reply *reply)
{
    struct reading *r = data;
    if (r->err == STORAGE_OK) {
        r->err = take_one(r, i, reply);
    } else if (reply->type == REPLY_ERROR) {
        r->lost = r->lost || reply_fault(reply) == REPLY_RECONNECT;
    }
    return true;
}

/* One partition of each server that has no place of logs, found anew when owners have changed. */
static const struct part_set *find_others(struct log_progress *progress, struct core *core)
{
    uint16_t server[PARTITIONS_MAX];
    bool is_asked[PARTITIONS_MAX] = {false};
    unsigned version = topology_version(core->topology);
    if (progress->knows_others && progress->version == version) {
        return &progress->others;
    }
    progress->others = (struct part_set){.words = {0}};
    progress->knows_others = servers_number(core, server) > 0;
    progress->version = version;
    for (unsigned i = 0; i < core_logs(core); i++) {
        unsigned number = server[core_log_partition(core, i)];
        if (number != SERVER_NOBODY) {
            is_asked[number] = true;
        }
    }
    for (unsigned p = 0; p < core->partitions.n; p++) {
        if (server[p] != SERVER_NOBODY && !is_asked[server[p]]) {
            is_asked[server[p]] = true;
            part_set_add(&progress->others, p);
        }
    }
    return &progress->others;
}

/* Ask those servers for anything: where no cursors are read, each server must answer something to
 * show that its connection stands. */
static void ask_others(const struct reading *r, struct asks *asks)
{
    const struct part_set *others = find_others(r->progress, r->core);
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        if (part_set_has(others, p)) {
            (void)asks_command(asks, r->core, p, "EXISTS", "state", 0);
        }
    }
}

/* Ask for the ids of partition 0.  `users` is not there before a user was forgotten. */
static void ask_ids(const struct reading *r, struct asks *asks)
{
    struct buffer *out = asks_command(asks, r->core, 0, "HMGET", "state", 2);
    resp_text(out, "ver");
    resp_text(out, "users");
}

static void ask_heads(const struct reading *r, struct asks *asks)
{
    for (unsigned i = 0; i < r->n_heads; i++) {
        (void)asks_command(asks, r->core, core_log_partition(r->core, i), "HGETALL", "heads", 0);
    }
    if (r->has_time) {
        resp_command(asks_begin(asks, 0), "TIME", NULL);
    }
    if (r->has_ids) {
        ask_ids(r, asks);
    }
}

/* Ask each partition for the cursors of r->asked. */
static void ask_cursors(const struct reading *r, struct asks *asks)
{
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        struct buffer *out = asks_command(asks, r->core, p, "HMGET", "state", r->n_asked);
        for (size_t i = 0; i < r->n_asked; i++) {
            resp_word(out, r->asked[i].id, LOG_ID_TEXT);
        }
    }
}

static enum storage_err run_trip(struct reading *r, struct session *session, int64_t deadline_ms)
{
    struct asks asks = asks_to(session);
    for (size_t i = 0; i < r->n_asked; i++) {
        r->asked[i].counted = UINT64_MAX;
    }
    ask_heads(r, &asks);
    if (r->n_asked > 0) {
        ask_cursors(r, &asks);
    } else if (r->core->is_spread) {
        ask_others(r, &asks);
    }
    enum redis_status status = asks_run(&asks, deadline_ms, take_reply, r);
    if (status != REDIS_OK_STATUS) {
        r->lost = true;
        return status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN;
    }
    return r->err;
}

/* Give the logs of progress->next the `counted` that is known: all known logs if the cursors were
 * just @asked for, else those that are counted up to their heads.  The others go to the front, to
 * be asked for.  Returns how many these are. */
static size_t sort_known(struct reading *r, bool asked)
{
    struct log_head *fresh = r->progress->next.all;
    size_t n_new = 0;
    for (size_t i = 0; i < r->progress->next.n; i++) {
        struct log_head log = fresh[i];
        const struct log_head *known = heads_find(&r->progress->logs, log.id, i);
        if (known != NULL && (asked || known->counted >= log.n)) {
            fresh[i].counted = known->counted;
        } else if (log.n > 0) { /* an empty log has nothing to be counted */
            fresh[i] = fresh[n_new];
            fresh[n_new++] = log;
        }
    }
    return n_new;
}

/* Read the heads, then cursors.  @all: the cursors of all known logs are read with the heads. */
static enum storage_err read_progress(
    struct reading *r, struct session *session, int64_t deadline_ms, bool all)
{
    struct log_progress *progress = r->progress;
    heads_clear(&progress->next);
    r->asked = progress->logs.all;
    r->n_asked = all ? progress->logs.n : 0;
    enum storage_err err = run_trip(r, session, deadline_ms);
    size_t n_new = err == STORAGE_OK ? sort_known(r, all) : 0;
    if (n_new > 0) {
        r->asked = progress->next.all;
        r->n_asked = n_new;
        r->n_heads = 0;
        r->has_time = r->has_ids = false;
        err = run_trip(r, session, deadline_ms);
    }
    progress->is_whole = all;
    return err;
}

enum storage_err log_progress_read(struct log_progress *progress, struct core *core,
    struct session *session, int64_t deadline_ms, bool *ret_lost)
{
    const struct reading begun = {.progress = progress,
        .core = core,
        .n_heads = core_logs(core),
        .has_time = core->is_spread || progress->remembers,
        .has_ids = progress->remembers,
        .err = STORAGE_OK};
    struct reading r = begun;
    int64_t since_us = session_stands_since(session);
    bool knows = progress->remembers && progress->stood_us != 0 && progress->stood_us == since_us;
    progress->detail[0] = '\0';
    progress->stood_us = 0;
    enum storage_err err = read_progress(&r, session, deadline_ms, !knows);
    if (err == STORAGE_OK && knows && session_stands_since(session) != since_us) {
        r = begun; /* a connection was made anew, so what was remembered may be void */
        err = read_progress(&r, session, deadline_ms, true);
    }
    *ret_lost = *ret_lost || r.lost;
    if (err != STORAGE_OK) {
        return err;
    }
    progress->stood_us = since_us == session_stands_since(session) ? since_us : 0;
    struct heads before = progress->logs;
    progress->logs = progress->next;
    progress->next = before;
    return STORAGE_OK;
}

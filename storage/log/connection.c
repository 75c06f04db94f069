/* connection.c - the writer's connection to Redis: made, prepared, lost, and waited for. */
#include <stdio.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/log/acknowledge.h"
#include "storage/log/writer.h"
#include "storage/log/writer_state.h"
#include "storage/session/dispatcher.h"
#include "storage/session/server.h"

#define CONNECT_MS   1000 /* an attempt to connect and prepare takes so long at most */
#define PREPARE_MS   3000 /* and so long at most to prepare the data of a cluster */
#define STEADY_MS    1000 /* a connection that held so long was a good one */
#define RETRY_MAX_MS 500  /* the pause between two attempts grows up to this */

static void back_off(struct writer *w, int64_t now_ms)
{
    w->next_connect_ms = now_ms + w->retry_ms;
    w->retry_ms = w->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : w->retry_ms * 2;
}

static void show_connected(struct writer *w, bool is)
{
    atomic_store(&w->is_connected, is);
    w->share->changed(w->share->data);
}

/* Show @why the writer is away, see writer_away().  Callers wait a second before they say that it
 * is, because an ordered failover takes less. */
static void show_away(struct writer *w, enum storage_err why)
{
    if (atomic_exchange(&w->away, (int)why) != (int)why) {
        w->share->changed(w->share->data);
    }
}

void writer_disconnect(struct writer *w, int64_t now_ms)
{
    session_lost(&w->session);
    appender_lost(&w->appender);
    w->lost = false;
    w->output_left = false;
    w->disconnected_ms = now_ms;
    if (now_ms - w->connected_ms >= STEADY_MS) {
        w->retry_ms = WRITER_RETRY_MIN_MS;
        w->next_connect_ms = now_ms;
    } else { /* the server takes connections, and loses them at once */
        back_off(w, now_ms);
    }
    atomic_store(&w->core->lacks_replicas, false);
    show_connected(w, false);
}

/* Prepare the data of a cluster, over all its servers.  One writer does that, and the others try
 * again later.  False: the data is not prepared. */
static bool prepare_cluster_data(struct writer *w, int64_t deadline_ms)
{
    struct dispatcher dispatcher;
    struct writers_share *share = w->share;
    struct session session = {.dispatcher = &dispatcher};
    (void)snprintf(w->session.why, sizeof(w->session.why), "the data is being looked at");
    bool is_prepared = atomic_load(&share->is_prepared) && core_refuses(w->core) == STORAGE_OK;
    /* Partition 0's server may have come back empty once more, and without the secret. */
    bool is_due =
        atomic_load(&share->is_rest_due) || partition_marks_next(&w->core->lost_states, 0) == 0;
    if (is_prepared && !is_due) {
        return true;
    }
    if (atomic_exchange(&share->is_preparing, true)) {
        return is_prepared;
    }
    atomic_store(&share->is_rest_due, false);
    dispatcher_init(&dispatcher, w->core, &w->session.look);
    bool ok =
        session_by_dispatcher(&session, w->core) &&
        session_prepare(&session, w->core, &share->prepared, !share->prepared_once, deadline_ms);
    dispatcher_release(&dispatcher);
    if (session.why[0] != '\0') {
        memcpy(w->session.why, session.why, sizeof(session.why));
    }
    share->prepared_once = share->prepared_once || ok;
    is_prepared = is_prepared && core_refuses(w->core) == STORAGE_OK; /* then the rest can wait */
    atomic_store(&share->is_partial, ok ? share->prepared.n_away > 0 : is_prepared);
    atomic_store(&share->is_prepared, ok || is_prepared);
    atomic_store(&share->is_preparing, false);
    return ok || is_prepared;
}

/* Is the server ours, and the data? */
static bool writer_prepare(struct writer *w, int64_t deadline_ms)
{
    if (w->core->is_spread) {
        return session_check(&w->session, w->core, deadline_ms) &&
               prepare_cluster_data(w, monotonic_ms() + PREPARE_MS);
    }
    bool ok = session_prepare(
        &w->session, w->core, &w->share->prepared, !w->share->prepared_once, deadline_ms);
    w->share->prepared_once = w->share->prepared_once || ok;
    return ok;
}

/* Which servers have partitions, or are reached, has changed while the writer had no connection.
 * The attempt to connect may take a second, and another place may be served by now. */
static void tell_of_servers(struct writer *w)
{
    unsigned changes = servers_changes(w->core);
    if (w->servers_changes != changes) {
        w->servers_changes = changes;
        w->share->changed(w->share->data);
    }
}

void writer_try_connect(struct writer *w, int64_t now_ms)
{
    int64_t deadline_ms = now_ms + CONNECT_MS;
    tell_of_servers(w);
    if (session_open(&w->session, w->core, deadline_ms)) {
        if (writer_prepare(w, deadline_ms) &&
            appender_connected(&w->appender, &w->session, monotonic_ms() + CONNECT_MS)) {
            w->disconnected_ms = 0;
            w->connected_ms = w->heard_ms = monotonic_ms();
            show_away(w, STORAGE_OK);
            show_connected(w, true);
            return;
        }
        session_lost(&w->session);
    }
    back_off(w, monotonic_ms());
    core_notice(w->core,
        atomic_load(&w->core->settings_differ) ? STORAGE_SETTINGS_DIFFER : STORAGE_CONNECT_FAILED,
        w->session.why);
}

void writer_lose_patience(struct writer *w, int64_t now_ms)
{
    if (now_ms - w->disconnected_ms < SERVER_PATIENCE_MS &&
        !atomic_load(&w->core->settings_differ)) {
        return;
    }
    enum storage_err err = core_refuses(w->core);
    err = err == STORAGE_OK ? STORAGE_DOWN : err;
    show_away(w, STORAGE_DOWN);
    writer_fail_waiting(w, err);
}

void writer_mind_stall(struct writer *w, int64_t now_ms)
{
    bool lags = acknowledge_lags(&w->appender, now_ms);
    if (!w->core->is_spread) { /* requests are refused before anything of them is sent */
        atomic_store(&w->core->lacks_replicas, lags);
        if (lags) {
            writer_fail_waiting(w, STORAGE_ALONE);
        }
        return;
    }
    const struct log_entry *open = w->appender.open;
    bool stalls = open != NULL && now_ms - open->begun_ms >= SERVER_PATIENCE_MS;
    if (lags) {
        acknowledge_let_fold_all(&w->appender);
    }
    enum storage_err why = stalls ? STORAGE_DOWN : lags ? STORAGE_ALONE : STORAGE_OK;
    show_away(w, why);
    if (why != STORAGE_OK) {
        writer_fail_waiting(w, why);
    }
}

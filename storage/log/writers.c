#include "storage/log/writers.h"

#include <sodium.h>
#include <stdlib.h>

#include "storage/base/cond.h"
#include "storage/cluster/topology.h"
#include "storage/session/server.h"

struct writers {
    struct core *core;
    struct unfolded *unfolded;
    struct writers_share share;
    _Atomic unsigned home;
    struct writer *_Atomic all[LOG_PARTITIONS_MAX]; /* by place; NULL: not started yet */
    pthread_mutex_t lock; /* held while a writer is started, which takes topology.lock */
    atomic_bool ends;     /* set under the lock: no writer is started any more */
};

/* ---- which are there ---- */

/* Call @tell for each writer that was started. */
static void each(struct writers *ws, void (*tell)(struct writer *w))
{
    for (unsigned i = 0; i < core_logs(ws->core); i++) {
        struct writer *w = atomic_load(&ws->all[i]);
        if (w != NULL) {
            tell(w);
        }
    }
}

static void wake_all(void *data)
{
    each(data, writer_wake);
}

/* The writer at @place, started if it is not there.  NULL: no memory, no thread, or the process
 * ends.
 */
static struct writer *writer_at(struct writers *ws, unsigned place)
{
    struct writer *w = atomic_load(&ws->all[place]);
    if (w != NULL) {
        return w;
    }
    pthread_mutex_lock(&ws->lock);
    w = atomic_load(&ws->all[place]);
    if (w == NULL && !ws->ends) {
        w = writer_start(ws->core, place, ws->unfolded, &ws->share);
        atomic_store(&ws->all[place], w);
    }
    pthread_mutex_unlock(&ws->lock);
    return w;
}

/* ---- at home ---- */

static bool is_fit(struct writers *ws, unsigned place)
{
    const struct writer *w = atomic_load(&ws->all[place]);
    unsigned partition = core_log_partition(ws->core, place);
    return (w == NULL || writer_away(w) == STORAGE_OK) &&
           topology_unserved_since(ws->core->topology, partition) == 0;
}

/* The writer that takes requests without a key.  If all are away, that is the last one at home. */
static struct writer *writer_at_home(struct writers *ws)
{
    unsigned home = atomic_load(&ws->home);
    struct writer *w = writer_at(ws, home);
    if (w == NULL || !ws->core->is_spread || writer_away(w) == STORAGE_OK) {
        return w;
    }
    unsigned n = core_logs(ws->core);
    unsigned from = randombytes_uniform(n);
    for (unsigned i = 0; i < n; i++) {
        unsigned place = (from + i) % n;
        if (is_fit(ws, place) && writer_at(ws, place) != NULL) {
            atomic_store(&ws->home, place);
            return writer_at(ws, place);
        }
    }
    return w;
}

/* Show what the writers say of their servers, as one figure for all.  Operators are told under the
 * lock whether there is a connection, so that what is told last holds. */
static void look_at_all(void *data)
{
    struct writers *ws = data;
    struct core *core = ws->core;
    bool any_connected = false;
    bool all_away = true;
    pthread_mutex_lock(&ws->lock); /* then a writer that has just started is in ws->all */
    for (unsigned i = 0; i < core_logs(core); i++) {
        const struct writer *w = atomic_load(&ws->all[i]);
        any_connected = any_connected || (w != NULL && writer_is_connected(w));
        all_away = all_away && (w == NULL || writer_away(w) == STORAGE_DOWN);
    }
    atomic_store(&core->stats.redis_connected, any_connected);
    atomic_store(&core->refusing,
        !any_connected && all_away &&
            (!core->is_spread || topology_n_unserved(core->topology) == core->partitions.n));
    if (atomic_exchange(&core->ready, any_connected) != any_connected) {
        core_notice(core, any_connected ? STORAGE_CONNECTED : STORAGE_DISCONNECTED, "");
    }
    pthread_mutex_unlock(&ws->lock);
    if (!any_connected) {
        (void)writer_at_home(ws); /* a process without requests, too, goes where it is served */
    }
}

static bool send_elsewhere(void *data, struct storage_job *job)
{
    struct writer *w = writer_at_home(data);
    job->more_follow = false; /* the caller is a writer, which flushes nobody */
    return w != NULL && writer_away(w) == STORAGE_OK && writer_submit(w, job, false) == STORAGE_OK;
}

enum storage_err writers_submit(struct writers *ws, struct storage_job *job)
{
    const struct request_key *keyed = job->u.write.keyed;
    struct writer *w =
        keyed == NULL ? writer_at_home(ws) : writer_at(ws, core_log_of_key(ws->core, &keyed->key));
    if (w == NULL) {
        return atomic_load(&ws->ends) ? STORAGE_SHUTDOWN : STORAGE_NOMEM;
    }
    enum storage_err err = writer_away(w);
    if (err == STORAGE_DOWN) {
        servers_blame(ws->core, job->detail, sizeof(job->detail));
    }
    return err == STORAGE_OK ? writer_submit(w, job, true) : err;
}

/* ---- life ---- */

struct writers *writers_start(struct core *core, struct unfolded *unfolded)
{
    struct writers *ws = calloc(1, sizeof(*ws));
    if (ws == NULL) {
        return NULL;
    }
    mutex_init(&ws->lock);
    ws->core = core;
    ws->unfolded = unfolded;
    atomic_store(&ws->home, core->is_spread ? randombytes_uniform(core_logs(core)) : 0);
    ws->share.changed = look_at_all;
    ws->share.elsewhere = send_elsewhere;
    ws->share.data = ws;
    unfolded_on_room(unfolded, wake_all, ws);
    core->standing.on_want = wake_all;
    core->standing.on_want_data = ws;
    if (writer_at(ws, atomic_load(&ws->home)) == NULL) {
        writers_stop(ws);
        return NULL;
    }
    return ws;
}

void writers_flush(struct writers *ws)
{
    each(ws, writer_flush);
}

void writers_drain(struct writers *ws, int64_t deadline_ms)
{
    pthread_mutex_lock(&ws->lock);
    ws->ends = true;
    pthread_mutex_unlock(&ws->lock);
    for (unsigned i = 0; i < core_logs(ws->core); i++) {
        struct writer *w = atomic_load(&ws->all[i]);
        if (w != NULL) {
            writer_drain_begin(w, deadline_ms);
        }
    }
    each(ws, writer_drain_end);
}

void writers_stop(struct writers *ws)
{
    pthread_mutex_lock(&ws->lock);
    ws->ends = true;
    pthread_mutex_unlock(&ws->lock);
    unfolded_on_room(ws->unfolded, NULL, NULL);
    each(ws, writer_stop_begin);
    each(ws, writer_stop_end);
    each(ws, writer_free); /* only now: their threads look at each other's writers */
    pthread_mutex_destroy(&ws->lock);
    free(ws);
}

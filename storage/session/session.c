#include "storage/session/session.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/redis/connect.h"
#include "storage/session/data_set.h"

/* May a thread go on waiting on a connection that the topology may take away?  A redis_look. */
static bool goes_on(void *data)
{
    struct session *session = data;
    return server_is_current(session->core, &session->server) &&
           (session->look.look == NULL || session->look.look(session->look.data));
}

/* Connect to the right server, and load all scripts.  False: session->why. */
static bool connect_and_load(struct session *session, struct core *core, int64_t deadline_ms)
{
    char *why = session->why;
    const size_t why_n = sizeof(session->why);
    struct redis_endpoint endpoint;
    const struct redis_look looks = {goes_on, session, session->look.silence_ms};
    if (!server_find(core, &session->server, &endpoint, why, why_n)) {
        return false;
    }
    session->redis = redis_connect(&endpoint, &core->resolvers,
        core->topology == NULL ? &session->look : &looks, deadline_ms, why, why_n);
    if (session->redis == NULL) {
        server_lost(core, &session->server);
        return false;
    }
    if (!server_prove(core, &session->server, session->redis, deadline_ms, why, why_n) ||
        !data_set_prove(core, &session->server, session->redis, deadline_ms, why, why_n) ||
        !scripts_load(session->redis, deadline_ms, &session->scripts, why, why_n)) {
        session_lost(session);
        return false;
    }
    return true;
}

/* Publish the digests of the scripts to sessions that are never opened. */
static void publish_scripts(struct core *core, const struct script_digests *scripts)
{
    const struct script_digests *none = NULL;
    struct script_digests *copy =
        atomic_load(&core->scripts) == NULL ? malloc(sizeof(*copy)) : NULL;
    if (copy != NULL) {
        *copy = *scripts;
        if (!atomic_compare_exchange_strong(&core->scripts, &none, copy)) {
            free(copy);
        }
    }
}

bool session_by_dispatcher(struct session *session, struct core *core)
{
    const struct script_digests *scripts = atomic_load(&core->scripts);
    if (scripts == NULL) {
        return false;
    }
    if (session->core == NULL) {
        session->core = core;
        session->scripts = *scripts;
    }
    return true;
}

bool session_open(struct session *session, struct core *core, int64_t deadline_ms)
{
    session->core = core;
    session->server.was_refused = false;
    if (!connect_and_load(session, core, deadline_ms)) {
        if (!session->is_writers && atomic_load(&core->ready) && core_runs(core)) {
            core_notice(core, STORAGE_LINK_FAILED, session->why);
        }
        return false;
    }
    if (core->is_spread) {
        publish_scripts(core, &session->scripts);
    }
    server_stands(core, &session->server);
    session->n_opened++;
    session->opened_us = monotonic_us();
    atomic_fetch_add(&core->stats.redis_connects, 1);
    return true;
}

void session_close(struct session *session)
{
    redis_close(session->redis);
    session->redis = NULL;
}

void session_close_if_dead(struct session *session)
{
    if (session->redis != NULL && redis_receive(session->redis) != REDIS_OK_STATUS) {
        session_close(session);
    }
}

void session_lost(struct session *session)
{
    if (session->redis != NULL) {
        if (!session->server.was_refused) {
            server_lost(session->core, &session->server);
        }
        redis_abandon(session->redis);
        session->redis = NULL;
    }
}

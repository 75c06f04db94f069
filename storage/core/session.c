#include "storage/core/session.h"

#include <stdio.h>

#include "storage/base/clock.h"

bool session_open(
    struct session *session, struct core *core, int64_t deadline_ms, char *error, size_t error_n)
{
    session->redis = redis_connect(&core->endpoint, &session->look, deadline_ms, error, error_n);
    if (session->redis == NULL) {
        return false;
    }
    if (scripts_load(session->redis, deadline_ms, &session->scripts) != REDIS_OK_STATUS) {
        (void)snprintf(error, error_n, "the scripts could not be loaded");
        session_close(session);
        return false;
    }
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

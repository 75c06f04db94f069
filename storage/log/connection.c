#include "storage/base/clock.h"
#include "storage/log/writer_state.h"

#define CONNECT_MS   1000 /* one attempt to connect and prepare */
#define STEADY_MS    1000 /* a connection that held so long was a good one */
#define RETRY_MAX_MS 500
#define PATIENCE_MS  1000 /* without a connection for so long: refuse at once */

static void back_off(struct writer *w, int64_t now_ms)
{
    w->next_connect_ms = now_ms + w->retry_ms;
    w->retry_ms = w->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : w->retry_ms * 2;
}

void writer_disconnect(struct writer *w, int64_t now_ms)
{
    session_lost(&w->session);
    appender_lost(&w->appender);
    limiter_lost(&w->limiter);
    reply_order_clear(&w->order);
    w->lost = false;
    w->output_left = false;
    w->disconnected_ms = now_ms;
    if (now_ms - w->connected_ms >= STEADY_MS) {
        w->retry_ms = WRITER_RETRY_MIN_MS;
        w->next_connect_ms = now_ms;
    } else { /* it connects, and is of no use: do not try again and again */
        back_off(w, now_ms);
    }
    atomic_store(&w->core->ready, false);
    core_write_failed(w->core, STORAGE_DOWN);
    atomic_store(&w->core->stats.redis_connected, 0);
    core_notice(w->core, STORAGE_DISCONNECTED, "");
}

void writer_try_connect(struct writer *w, int64_t now_ms)
{
    char error[400] = ""; /* names a site and its zones */
    int64_t deadline_ms = now_ms + CONNECT_MS;
    if (session_open(&w->session, w->core, deadline_ms, error, sizeof(error))) {
        if (session_prepare(&w->session, w->core, &w->replaced, !w->prepared_once, deadline_ms,
                error, sizeof(error)) &&
            appender_connected(&w->appender, &w->session, deadline_ms)) {
            w->prepared_once = true;
            w->disconnected_ms = 0;
            w->connected_ms = monotonic_ms();
            atomic_store(&w->core->refusing, false);
            atomic_store(&w->core->ready, true);
            atomic_store(&w->core->stats.redis_connected, 1);
            core_notice(w->core, STORAGE_CONNECTED, "");
            return;
        }
        session_lost(&w->session);
    }
    back_off(w, monotonic_ms());
    core_notice(w->core,
        atomic_load(&w->core->settings_differ) ? STORAGE_SETTINGS_DIFFER : STORAGE_CONNECT_FAILED,
        error);
}

void writer_lose_patience(struct writer *w, int64_t now_ms)
{
    if (now_ms - w->disconnected_ms < PATIENCE_MS && !atomic_load(&w->core->settings_differ)) {
        return;
    }
    enum storage_err err = atomic_load(&w->core->settings_differ) ? STORAGE_CONFIG : STORAGE_DOWN;
    atomic_store(&w->core->refusing, true);
    writer_fail_waiting(w, err);
}

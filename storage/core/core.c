#include "storage/core/core.h"

#include <stdlib.h>

#include "storage/redis/resolver.h"
#include "storage/schema/key.h"
#include "storage/schema/settings.h"

void core_init(struct core *core)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&core->view_lock, NULL);
    pthread_mutex_init(&core->wake_lock, NULL);
    pthread_cond_init(&core->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void core_release(struct core *core)
{
    resolver_free(core->endpoint.resolver);
    pthread_cond_destroy(&core->wake);
    pthread_mutex_destroy(&core->wake_lock);
    pthread_mutex_destroy(&core->view_lock);
    cache_free(core->cache);
    free((void *)(uintptr_t)atomic_load(&core->secret));
    site_zones_release(&core->sites);
}

void core_wake_rollup(struct core *core)
{
    pthread_mutex_lock(&core->wake_lock);
    core->wake_rollup = true;
    pthread_cond_signal(&core->wake);
    pthread_mutex_unlock(&core->wake_lock);
}

void core_time_seen(struct core *core, int64_t redis_us)
{
    if (redis_us > 0 && redis_clock_seen(&core->clock, redis_us)) {
        core_wake_rollup(core);
        core_notice(core, STORAGE_CLOCK, "");
    }
}

struct partition_view core_view(struct core *core, unsigned partition)
{
    pthread_mutex_lock(&core->view_lock);
    struct partition_view view = core->views[partition];
    pthread_mutex_unlock(&core->view_lock);
    if (!view.known) {
        view.state = rollup_state_initial(zone_utc(), redis_clock_ms(&core->clock) / 1000);
        view.retention = core->config.retention;
    }
    return view;
}

void core_set_view(struct core *core, unsigned partition, struct partition_view *view)
{
    pthread_mutex_lock(&core->view_lock);
    const struct ver *before = &core->views[partition].over;
    view->over_held = view->over.n > 0 && ver_equal(before, &view->over);
    core->views[partition] = *view;
    pthread_mutex_unlock(&core->view_lock);
}

void core_ask_rolled(struct buffer *out, const char *tag, size_t more)
{
    static const char *const fields[ROLLED_FIELDS] = {"cfg", "st", "ver", "kept", "over"};
    struct key rolled;
    key_fixed(&rolled, tag, "rolled", SLICE(""));
    resp_head(out, 2 + ROLLED_FIELDS + more);
    resp_text(out, "HMGET");
    resp_word(out, rolled.p, rolled.n);
    for (size_t i = 0; i < ROLLED_FIELDS; i++) {
        resp_text(out, fields[i]);
    }
}

static void copy_ver(struct ver *to, const struct reply *from)
{
    if (from->type == REPLY_TEXT && from->text.n <= VER_MAX) {
        to->n = (uint8_t)from->text.n;
        memcpy(to->text, from->text.p, from->text.n);
    }
}

#define OVER_DIGITS 11

/* Seconds, a blank and an id: see write.lua. */
static void copy_over(struct partition_view *view, const struct reply *over)
{
    struct reply seconds = *over;
    if (over->type != REPLY_TEXT || over->text.n <= OVER_DIGITS) {
        return;
    }
    seconds.text.n = OVER_DIGITS;
    view->over_s = reply_integer(&seconds, 0);
    copy_ver(&view->over, over);
}

bool core_parse_rolled(struct core *core, const struct reply *rolled, struct partition_view *ret)
{
    struct partition_view view = {.known = true, .retention = core->config.retention};
    if (rolled->type != REPLY_ARRAY || rolled->n != ROLLED_FIELDS) {
        return false;
    }
    const struct reply *cfg = &rolled->items[0];
    if (cfg->type == REPLY_NIL) {
        view.known = false;
        view.state = rollup_state_initial(zone_utc(), redis_clock_ms(&core->clock) / 1000);
        *ret = view;
        return true;
    }
    if (!slice_equal(cfg->text, slice_of(core->cfg)) ||
        !rollup_state_parse(rolled->items[1].text, &view.state)) {
        return false;
    }
    copy_ver(&view.ver, &rolled->items[2]);
    copy_over(&view, &rolled->items[4]);
    const struct reply *kept = &rolled->items[3];
    if (kept->type == REPLY_TEXT && !kept_parse(kept->text, &view.retention)) {
        return false;
    }
    *ret = view;
    return true;
}

void core_write_failed(struct core *core, enum storage_err err)
{
    if (err == STORAGE_OOM) {
        atomic_fetch_add(&core->stats.redis_oom, 1);
    }
    uint64_t was = atomic_load(&core->write_fault);
    while (!atomic_compare_exchange_weak(
        &core->write_fault, &was, ((was >> 8) + 1) << 8 | (uint64_t)err)) {
    }
}

void core_notice(struct core *core, enum storage_notice what, const char *detail)
{
    if (core->config.notice != NULL) {
        core->config.notice(core->config.notice_data, what, detail);
    }
}

bool core_runs(void *data)
{
    struct core *core = data;
    return !atomic_load(&core->stopping);
}

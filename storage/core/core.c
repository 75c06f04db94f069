#include "storage/core/core.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"

void core_init(struct core *core)
{
    standing_init(&core->standing, core->config.ack_replicas > 0);
    mutex_init(&core->view_lock);
    period_secrets_init(&core->period_secrets);
    deletions_init(&core->deletions);
    wake_init(&core->rollup_wake);
    resolvers_init(&core->resolvers);
}

void core_release(struct core *core)
{
    resolvers_release(&core->resolvers);
    wake_release(&core->rollup_wake);
    pthread_mutex_destroy(&core->view_lock);
    free((void *)(uintptr_t)atomic_load(&core->secret));
    free((void *)(uintptr_t)atomic_load(&core->scripts));
    period_secrets_release(&core->period_secrets);
    deletions_release(&core->deletions);
    site_zones_release(&core->sites);
}

void core_time_seen(struct core *core, int64_t redis_us)
{
    if (redis_us > 0 && redis_clock_seen(&core->clock, redis_us)) {
        wake_up(&core->rollup_wake);
        core_notice(core, STORAGE_CLOCK, "");
    }
}

struct partition_view core_view(struct core *core, unsigned partition)
{
    pthread_mutex_lock(&core->view_lock);
    struct partition_view view = core->views[partition];
    pthread_mutex_unlock(&core->view_lock);
    if (!view.known) {
        view.state = rollup_state_initial(redis_clock_ms(&core->clock) / 1000);
        view.retention = core->config.retention;
    }
    return view;
}

int64_t core_rollup_lag_s(struct core *core, enum level level)
{
    int64_t now_s = redis_clock_ms(&core->clock) / 1000;
    int64_t lag_s = 0;
    if (now_s == 0) {
        return 0;
    }
    /* The end of the last bucket that is over, in any zone in use. */
    int64_t over_s = site_zones_start(&core->sites, level, now_s);
    for (unsigned p = 0; p < core->partitions.n; p++) {
        int64_t behind_s = over_s - core_view(core, p).state.readers_s[level];
        lag_s = behind_s > lag_s ? behind_s : lag_s;
    }
    return lag_s;
}

int64_t core_latest_s(const struct core *core, int64_t now_s)
{
    int64_t latest_s = atomic_load(&core->latest_s);
    return latest_s > now_s ? latest_s : now_s;
}

/* Note keep times of a partition that were shorter before.  With view_lock held. */
static void note_shorter(struct core *core, const struct retention *r)
{
    for (int level = 0; level < LEVELS; level++) {
        int64_t until_s = atomic_load(&core->shorter_until_s[level]);
        int64_t keep_s = atomic_load(&core->shorter_keep_s[level]);
        if (r->until_s[level] == 0 || r->before_s[level] >= r->keep_s[level]) {
            continue;
        }
        if (keep_s == 0 || r->before_s[level] < keep_s) {
            atomic_store(&core->shorter_keep_s[level], r->before_s[level]);
        }
        if (r->until_s[level] > until_s) {
            atomic_store(&core->shorter_until_s[level], r->until_s[level]);
        }
    }
}

int64_t core_oldest_s(const struct core *core, enum level level, int64_t now_s)
{
    int64_t keep_s = core->config.retention.keep_s[level];
    int64_t oldest_s = keep_s == KEEP_FOREVER ? INT64_MIN : now_s - keep_s;
    int64_t until_s = atomic_load(&core->shorter_until_s[level]);
    int64_t shorter_s = now_s - atomic_load(&core->shorter_keep_s[level]);
    shorter_s = shorter_s < until_s ? shorter_s : until_s;
    return until_s != 0 && shorter_s > oldest_s ? shorter_s : oldest_s;
}

void core_set_view(struct core *core, unsigned partition, struct partition_view *view)
{
    int64_t now_ms = monotonic_ms();
    pthread_mutex_lock(&core->view_lock);
    const struct partition_view *before = &core->views[partition];
    view->over_held = view->over.n > 0 && ver_equal(&before->over, &view->over);
    view->ver_held = view->ver.n > 0 && ver_equal(&before->ver, &view->ver);
    view->fold_held = view->fold.n > 0 && ver_equal(&before->fold, &view->fold);
    view->seen_ms = now_ms;
    if (view->over_s > atomic_load(&core->latest_s)) {
        atomic_store(&core->latest_s, view->over_s);
    }
    core->views[partition] = *view;
    note_shorter(core, &view->retention);
    pthread_mutex_unlock(&core->view_lock);
}

void core_forget_ver(struct core *core, unsigned partition, const struct ver *ver)
{
    pthread_mutex_lock(&core->view_lock);
    struct partition_view *view = &core->views[partition];
    if (ver_equal(&view->ver, ver)) { /* else another reader has learnt the new `ver` meanwhile */
        view->ver.n = 0;
        view->ver_held = false;
    }
    pthread_mutex_unlock(&core->view_lock);
}

bool core_may_lose(const struct core *core, int64_t us)
{
    bool may = false;
    for (unsigned i = 0; i < core_logs(core); i++) {
        int64_t since_us = atomic_load(&core->unsafe_since_us[i]);
        may = may || (since_us != 0 && since_us <= us);
    }
    return may;
}

bool core_parse_state(struct core *core, const struct reply *fields, struct partition_view *ret)
{
    return partition_state_parse(
        fields, core->cfg, &core->config.retention, redis_clock_ms(&core->clock) / 1000, ret);
}

enum storage_err core_refuses(const struct core *core)
{
    if (!atomic_load(&core->settings_differ)) {
        return STORAGE_OK;
    }
    return atomic_load(&core->is_foreign) ? STORAGE_FOREIGN : STORAGE_CONFIG;
}

enum storage_err core_other_settings(struct core *core, struct slice cfg)
{
    uint64_t set;
    if (!settings_set(cfg, &set) || set == core->data_set) {
        return STORAGE_CONFIG;
    }
    atomic_store(&core->is_foreign, true);
    atomic_store(&core->settings_differ, true);
    return STORAGE_FOREIGN;
}

enum storage_err core_catch_up(struct core *core, int64_t before_us, int64_t deadline_ms)
{
    return core->catch_up == NULL ? STORAGE_BEHIND
                                  : core->catch_up(core->catch_up_data, before_us, deadline_ms);
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

static void print_lost(const struct core *core, unsigned partition, char text[LOST_STATE_TEXT])
{
    (void)snprintf(text, LOST_STATE_TEXT,
        "partition %u has lost its state: mend slot %u, or `tallyd cluster reset-partition %u`",
        partition, partition_slot(&core->partitions, partition), partition);
}

void core_note_state(struct core *core, unsigned partition, bool is_lost)
{
    if (!core->is_spread || !partition_marks_note(&core->lost_states, partition, is_lost)) {
        return;
    }
    atomic_fetch_add(&core->stats.partitions_without_state, is_lost ? 1 : -1);
    if (is_lost) {
        char text[LOST_STATE_TEXT];
        print_lost(core, partition, text);
        core_notice(core, STORAGE_REFUSING, text);
        if (partition == 0) {
            atomic_store(&core->is_first_lost, true);
        }
    }
}

bool core_state_lost(struct core *core, unsigned partition, const struct reply *fields)
{
    bool is_lost = core->is_spread && fields->items[0].type == REPLY_NIL;
    core_note_state(core, partition, is_lost);
    return is_lost;
}

enum storage_err core_learn_state(
    struct core *core, unsigned partition, const struct reply *reply, struct partition_view *ret)
{
    bool is_array = reply->type == REPLY_ARRAY;
    if (is_array && reply->n == STATE_FIELDS && core_state_lost(core, partition, reply)) {
        return STORAGE_STATE_LOST;
    }
    if (!core_parse_state(core, reply, ret)) {
        return is_array && reply->n > 0 ? core_other_settings(core, reply->items[0].text)
                                        : STORAGE_CONFIG;
    }
    core_set_view(core, partition, ret);
    return STORAGE_OK;
}

void core_note_open_slot(struct core *core, unsigned partition, bool is_open)
{
    if (core->is_spread && partition_marks_note(&core->open_slots, partition, is_open)) {
        atomic_fetch_add(&core->stats.partitions_in_open_slots, is_open ? 1 : -1);
    }
}

bool core_open_slot_text(const struct core *core, char text[OPEN_SLOT_TEXT])
{
    unsigned partition = partition_marks_next(&core->open_slots, 0);
    if (partition == PARTITIONS_MAX) {
        return false;
    }
    (void)snprintf(text, OPEN_SLOT_TEXT, "partition %u waits: slot %u is half moved", partition,
        partition_slot(&core->partitions, partition));
    return true;
}

bool core_lost_text(const struct core *core, char text[LOST_STATE_TEXT])
{
    unsigned partition = partition_marks_next(&core->lost_states, 0);
    if (partition == PARTITIONS_MAX) {
        return false;
    }
    print_lost(core, partition, text);
    return true;
}

void core_settled(struct core *core, int64_t us)
{
    int64_t known_us = atomic_load(&core->settled_us);
    while (known_us < us && !atomic_compare_exchange_weak(&core->settled_us, &known_us, us)) {
    }
}

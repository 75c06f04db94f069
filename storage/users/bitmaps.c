#include "storage/users/bitmaps.h"

#include <stdio.h>

#include "storage/redis/resp.h"
#include "storage/session/reply_fault.h"
#include "storage/time/bucket.h"

void activity_begin(
    struct activity *a, struct core *core, struct session *session, int64_t deadline_ms)
{
    *a = (struct activity){.core = core};
    pipeline_init(&a->pipe, session, deadline_ms);
}

enum storage_err activity_partition(
    struct core *core, struct slice site, struct slice user, unsigned *ret)
{
    const struct secret *secret = atomic_load(&core->secret);
    struct visitor_id id;
    if (secret == NULL) {
        return STORAGE_DOWN;
    }
    identity_user(secret, site, user, &id);
    *ret = visitor_partition(&core->partitions, &id);
    return STORAGE_OK;
}

bool activity_sizes(struct activity *a, struct slice site, uint64_t ret[static PARTITIONS_MAX])
{
    const struct partitions *partitions = &a->core->partitions;
    for (unsigned p = 0; p < partitions->n; p++) {
        struct key key;
        ret[p] = 0;
        if (!partition_has_visitors(partitions, p)) {
            continue;
        }
        struct buffer *out = pipeline_command(&a->pipe, p, "HGET", 2);
        resp_slice(out, key_user_index(&key, partitions->tag[p], site));
        resp_text(out, "");
    }
    bool ok = pipeline_send(&a->pipe, false);
    for (unsigned p = 0; ok && p < partitions->n; p++) {
        ok = !partition_has_visitors(partitions, p) || pipeline_number(&a->pipe, &ret[p]);
    }
    return ok;
}

int64_t activity_oldest_day(const struct core *core, const struct zone *zone, int64_t now_s)
{
    int64_t keep_s = core->config.retention.keep_s[LEVEL_DAY];
    return keep_s >= now_s ? 0 : bucket_day(zone, now_s - keep_s);
}

/* Take what a partition says of its settings, and of the day before which bitmaps were swept away.
 */
static bool take_swept(struct activity *a, unsigned partition, int64_t *oldest)
{
    const struct reply *reply = pipeline_take(&a->pipe);
    if (reply == NULL) {
        return false;
    }
    if (reply->type != REPLY_ARRAY || reply->n != 2) {
        return pipeline_foreign(&a->pipe, "a partition's state");
    }
    if (core_state_lost(a->core, partition, reply)) { /* then its bitmaps are lost, too */
        (void)core_lost_text(a->core, a->pipe.detail);
        return pipeline_fail(&a->pipe, STORAGE_STATE_LOST);
    }
    const struct reply *cfg = &reply->items[0];
    if (cfg->type != REPLY_NIL && !slice_equal(cfg->text, slice_of(a->core->cfg))) {
        return pipeline_fail(&a->pipe, core_other_settings(a->core, cfg->text));
    }
    int64_t swept = reply_integer(&reply->items[1], 0);
    *oldest = swept > *oldest ? swept : *oldest;
    return true;
}

static void ask_kept(struct activity *a, unsigned low, unsigned high)
{
    const struct partitions *partitions = &a->core->partitions;
    for (unsigned p = low; p < high; p++) {
        if (!partition_has_visitors(partitions, p)) {
            continue;
        }
        struct buffer *out = pipeline_command(&a->pipe, p, "HMGET", 3);
        key_put(out, partitions->tag[p], "state");
        resp_text(out, "cfg");
        resp_text(out, "swept");
    }
    (void)pipeline_command(&a->pipe, 0, "TIME", 0);
    a->kept_is_asked = true;
}

void activity_ask_kept(struct activity *a, unsigned low, unsigned high)
{
    if (a->pipe.session->dispatcher == NULL && !a->kept_is_asked) {
        ask_kept(a, low, high);
    }
}

bool activity_were_kept(struct activity *a, struct slice site, unsigned low, unsigned high,
    int64_t first_day, int64_t *ret_oldest)
{
    struct core *core = a->core;
    int64_t oldest = 0;
    if (!a->kept_is_asked) {
        ask_kept(a, low, high);
    }
    bool ok = pipeline_send(&a->pipe, false);
    for (unsigned p = low; ok && p < high; p++) {
        ok = !partition_has_visitors(&core->partitions, p) || take_swept(a, p, &oldest);
    }
    const struct reply *time = ok ? pipeline_take(&a->pipe) : NULL;
    if (time == NULL) {
        return false;
    }
    core_time_of(core, 0, reply_time_us(time));
    const struct zone *zone = site_zones_get(&core->sites, site);
    int64_t by_time = activity_oldest_day(core, zone, reply_time_us(time) / 1000000);
    *ret_oldest = by_time > oldest ? by_time : oldest;
    return first_day >= *ret_oldest || pipeline_fail(&a->pipe, STORAGE_NOT_KEPT);
}

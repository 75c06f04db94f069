#include "storage/users/bitmaps.h"

#include <stdio.h>

#include "storage/core/reply_fault.h"
#include "storage/redis/resp.h"
#include "storage/time/day.h"

void talk_begin(struct talk *talk, struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    *talk = (struct talk){.reader = reader, .job = job, .ret_lost = ret_lost};
    buffer_init(&talk->out);
}

void talk_end(struct talk *talk)
{
    buffer_release(&talk->out);
}

bool talk_send(struct talk *talk)
{
    bool ok = talk->out.n == 0 || redis_queue(talk->reader->session.redis, &talk->out);
    buffer_clear(&talk->out, 64 * 1024);
    *talk->ret_lost = *talk->ret_lost || !ok;
    return ok;
}

enum storage_err talk_next(struct talk *talk, const struct reply **ret)
{
    enum redis_status status =
        redis_await(talk->reader->session.redis, talk->job->deadline_ms, ret);
    if (status != REDIS_OK_STATUS) {
        *talk->ret_lost = true;
        return status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN;
    }
    if ((*ret)->type != REPLY_ERROR) {
        return STORAGE_OK;
    }
    enum storage_err err = reply_err(*ret, talk->ret_lost);
    *talk->ret_lost = true;
    if (err != STORAGE_OOM) { /* whose text says what a caller is to know */
        reader_op_detail(talk->job, *ret);
    }
    return err;
}

enum storage_err talk_foreign(struct talk *talk)
{
    *talk->ret_lost = true;
    (void)snprintf(talk->job->detail, sizeof(talk->job->detail), "a bitmap holds foreign data");
    return STORAGE_REFUSED;
}

enum storage_err talk_number(struct talk *talk, uint64_t *ret)
{
    const struct reply *reply = NULL;
    enum storage_err err = talk_next(talk, &reply);
    if (err != STORAGE_OK) {
        return err;
    }
    int64_t number = reply->type == REPLY_NIL ? 0 : reply_integer(reply, -1);
    if (number < 0) {
        return talk_foreign(talk);
    }
    *ret = (uint64_t)number;
    return STORAGE_OK;
}

enum storage_err activity_partition(
    struct core *core, struct slice site, struct slice user, unsigned *ret)
{
    const struct secret *secret = atomic_load(&core->secret);
    struct event event = {.site = site, .page = SLICE("/"), .user = user};
    struct row row;
    if (secret == NULL) {
        return STORAGE_DOWN;
    }
    row_make(&event, secret, core->config.rotation, &core->partitions, &core->sites, &row);
    *ret = row.visitor_partition;
    return STORAGE_OK;
}

enum storage_err activity_sizes(
    struct talk *talk, struct slice site, uint64_t ret[static PARTITIONS_MAX])
{
    const struct partitions *partitions = &talk->reader->core->partitions;
    for (unsigned p = 0; p < partitions->n; p++) {
        struct key key;
        key_user_index(&key, partitions->tag[p], site);
        resp_head(&talk->out, 3);
        resp_text(&talk->out, "HGET");
        resp_word(&talk->out, key.p, key.n);
        resp_text(&talk->out, "");
    }
    enum storage_err err = talk_send(talk) ? STORAGE_OK : STORAGE_NOMEM;
    for (unsigned p = 0; err == STORAGE_OK && p < partitions->n; p++) {
        err = talk_number(talk, &ret[p]);
    }
    return err;
}

int64_t activity_oldest_day(const struct core *core, const struct zone *zone, int64_t now_s)
{
    int64_t keep_s = core->config.retention.keep_s[LEVEL_DAY];
    return keep_s >= now_s ? 0 : activity_day_of(zone, now_s - keep_s);
}

/* One partition's word: its settings, and before which day bitmaps were swept away. */
static enum storage_err take_swept(struct talk *talk, int64_t *oldest)
{
    const struct reply *reply = NULL;
    struct core *core = talk->reader->core;
    enum storage_err err = talk_next(talk, &reply);
    if (err != STORAGE_OK) {
        return err;
    }
    if (reply->type != REPLY_ARRAY || reply->n != 2) {
        return talk_foreign(talk);
    }
    const struct reply *cfg = &reply->items[0];
    if (cfg->type != REPLY_NIL && !slice_equal(cfg->text, slice_of(core->cfg))) {
        *talk->ret_lost = true;
        return STORAGE_CONFIG;
    }
    int64_t swept = reply_integer(&reply->items[1], 0);
    *oldest = swept > *oldest ? swept : *oldest;
    return STORAGE_OK;
}

enum storage_err activity_were_kept(struct talk *talk, struct slice site, unsigned low,
    unsigned high, int64_t first_day, int64_t *ret_oldest)
{
    struct core *core = talk->reader->core;
    const struct reply *reply = NULL;
    int64_t oldest = 0;
    for (unsigned p = low; p < high; p++) {
        struct key key;
        key_fixed(&key, core->partitions.tag[p], "rolled", SLICE(""));
        resp_head(&talk->out, 4);
        resp_text(&talk->out, "HMGET");
        resp_word(&talk->out, key.p, key.n);
        resp_text(&talk->out, "cfg");
        resp_text(&talk->out, "swept");
    }
    resp_command(&talk->out, "TIME", NULL);
    enum storage_err err = talk_send(talk) ? STORAGE_OK : STORAGE_NOMEM;
    for (unsigned p = low; err == STORAGE_OK && p < high; p++) {
        err = take_swept(talk, &oldest);
    }
    err = err == STORAGE_OK ? talk_next(talk, &reply) : err;
    if (err != STORAGE_OK) {
        return err;
    }
    core_time_seen(core, reply_time_us(reply));
    const struct zone *zone = site_zones_get(&core->sites, site);
    int64_t by_time = activity_oldest_day(core, zone, reply_time_us(reply) / 1000000);
    *ret_oldest = by_time > oldest ? by_time : oldest;
    return first_day < *ret_oldest ? STORAGE_NOT_KEPT : STORAGE_OK;
}

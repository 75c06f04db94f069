#include "storage/deletion/list.h"
#include "storage/deletion/turn.h"
#include "storage/redis/resp.h"
#include "storage/users/bitmaps.h"

#define REPEAT_MS 600000 /* for so long entries may be appended again that arrived before */

bool redis_now_ms(struct turn *turn, int64_t *ret)
{
    (void)pipeline_command(&turn->pipe, 0, "TIME", 0);
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    if (reply == NULL) {
        return false;
    }
    core_time_of(turn->core, 0, reply_time_us(reply));
    *ret = reply_time_us(reply) / 1000;
    return true;
}

bool mark_partition(struct turn *turn, unsigned partition)
{
    const struct deletion_work *work = turn->work;
    const char *tag = turn->core->partitions.tag[partition];
    char id[ACTIVITY_GENERATION];
    struct key key;
    struct slice site = work->target.page.n == 0 ? work->target.site : SLICE("");
    activity_new_generation(id);
    bool is_first = partition == 0;
    struct buffer *out = pipeline_script(
        &turn->pipe, partition, SCRIPT_DELETION_MARK, is_first ? 3 : 2, is_first ? 8 : 6);
    key_fixed(&key, tag, "state", SLICE(""));
    resp_word(out, key.p, key.n);
    key_fixed(&key, tag, "pass", SLICE(""));
    resp_word(out, key.p, key.n);
    if (is_first) { /* a leader before this one may have come to the end meanwhile */
        deletion_list_key(turn->core, &key);
        resp_word(out, key.p, key.n);
    }
    resp_decimal(out, work->token);
    resp_word(out, site.p, site.n);
    resp_decimal(out, work->record.until_ms);
    resp_text(out, id);
    resp_decimal(out, redis_clock_ms(&turn->core->clock) - REPEAT_MS);
    resp_text(out, work->phase == DELETION_MARK ? work->record.id : "");
    if (is_first) {
        resp_word(out, work->field.p, work->field.n);
        resp_text(out, work->record.id);
    }
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    turn->is_fenced = reply != NULL && reply_integer(reply, 0) != 1;
    return reply != NULL && !turn->is_fenced;
}

bool check_end(struct turn *turn, unsigned partition)
{
    const struct deletion_work *work = turn->work;
    struct key key;
    struct buffer *out = pipeline_command(&turn->pipe, partition, "HGET", 2);
    key_fixed(&key, turn->core->partitions.tag[partition], "state", SLICE(""));
    resp_word(out, key.p, key.n);
    resp_text(out, "deleting");
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    if (reply == NULL) {
        return false;
    }
    bool is_behind =
        reply->type == REPLY_TEXT && slice_equal(reply->text, slice_of(work->record.id));
    return !is_behind || mark_partition(turn, partition);
}

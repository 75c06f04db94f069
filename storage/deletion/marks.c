/* marks.c - sets, reads and takes away the marks of a deletion in the states of partitions. */
#include "storage/base/random_id.h"
#include "storage/deletion/list.h"
#include "storage/deletion/turn.h"
#include "storage/redis/resp.h"
#include "storage/users/bitmaps.h"

#define REPEAT_MS 600000 /* an entry may be appended again for so long after its arrival */

const struct reply *read_marks(struct turn *turn, unsigned partition)
{
    struct buffer *out = pipeline_command(&turn->pipe, partition, "HMGET", 4);
    key_put(out, turn->core->partitions.tag[partition], "state");
    resp_text(out, "deleting");
    resp_text(out, "deleted");
    resp_text(out, "cfg");
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    if (reply != NULL && (reply->type != REPLY_ARRAY || reply->n != 3)) {
        (void)pipeline_foreign(&turn->pipe, "a partition's state");
        return NULL;
    }
    return reply;
}

bool mark_partition(struct turn *turn, unsigned partition)
{
    const struct deletion_work *work = turn->work;
    const char *tag = turn->core->partitions.tag[partition];
    char id[ACTIVITY_GENERATION];
    random_id(id, sizeof(id));
    bool is_first = partition == 0;
    struct buffer *out = pipeline_script(
        &turn->pipe, partition, SCRIPT_DELETION_MARK, is_first ? 3 : 2, is_first ? 7 : 6);
    key_put(out, tag, "state");
    key_put(out, tag, "pass");
    if (is_first) { /* a leader before this one may have come to the end meanwhile */
        deletion_list_put(turn->core, out);
    }
    resp_decimal(out, work->token);
    resp_word(out, work->field.p, work->field.n);
    resp_decimal(out, work->record.until_ms);
    resp_text(out, id);
    resp_decimal(out, redis_clock_ms(&turn->core->clock) - REPEAT_MS);
    resp_text(out, work->phase == DELETION_MARK ? work->record.id : "");
    if (is_first) {
        resp_text(out, work->record.id);
    }
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    return reply != NULL && reply_integer(reply, 0) == 1;
}

/* Do a step of the sweep of the partition at hand.  *ret_over: all of it was swept, or it cannot be
 * swept: it is not known which pages were deleted, or which deletion the partition knows. */
static bool sweep_partition(struct turn *turn, bool *ret_over)
{
    struct deletion_work *work = turn->work;
    const struct sweep_order order = {work->token, work->record.id};
    *ret_over = work->target.site.n == 0 || work->record.id[0] == '\0';
    if (*ret_over) {
        return true;
    }
    enum sweep_result result =
        sweep_step(&work->sweep, turn->core, &turn->pipe, &work->target, &order);
    if (result == SWEEP_UNMARKED) {
        begin_again(work);
        return true;
    }
    *ret_over = work->sweep.partition > work->partition;
    if (work->sweep.partition < work->partition) { /* servers have changed: see sweep_step() */
        work->is_ending = false;
    }
    return result != SWEEP_FENCED && result != SWEEP_FAULT;
}

bool end_partition(struct turn *turn, bool *ret_done)
{
    struct deletion_work *work = turn->work;
    bool is_over = false;
    *ret_done = false;
    if (!work->is_ending) {
        sweep_begin(&work->sweep, turn->pipe.session);
        work->sweep.partition = work->partition;
        work->is_ending = true;
    }
    if (!sweep_partition(turn, &is_over)) {
        return false;
    }
    if (!is_over) {
        return true;
    }
    work->is_ending = false;
    *ret_done = mark_partition(turn, work->partition);
    return *ret_done;
}

bool check_end(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    bool is_done = false;
    if (work->is_ending) {
        bool ok = end_partition(turn, &is_done);
        work->partition += is_done;
        return ok;
    }
    const struct reply *marks = read_marks(turn, work->partition);
    if (marks == NULL) {
        return false;
    }
    const struct reply *deleting = &marks->items[0];
    bool is_behind =
        deleting->type == REPLY_TEXT && slice_equal(deleting->text, slice_of(work->record.id));
    work->partition += !is_behind;
    return !is_behind || end_partition(turn, &is_done);
}

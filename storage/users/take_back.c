/* take_back.c - clears one bit: that a user did an action on a day.
 *
 * A fold may remember that the bit is set, and would then not set it again.  So the script is one
 * that folds are told of (users/user_change.h). */
#include "storage/users/user_change.h"

static enum storage_err take_back(
    struct reader *reader, struct storage_job *job, unsigned partition, bool *ret_lost)
{
    struct take_back_job *day = &job->u.take_back;
    int64_t ignored = 0;
    struct key key;
    key_activity(&key, reader->core->partitions.tag[partition], day->site, day->action, day->day);
    const struct user_change change = {
        .script = SCRIPT_CLEAR_DAY,
        .site = day->site,
        .user = day->user,
        .partition = partition,
        .keys = &key,
        .n_keys = 1,
    };
    enum storage_err err = user_change_run(reader, job, &change, &ignored, ret_lost);
    day->sent = day->sent || err == STORAGE_UNKNOWN;
    return err;
}

enum storage_err take_back_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct take_back_job *day = &job->u.take_back;
    struct core *core = reader->core;
    unsigned partition = 0;
    struct activity a;
    enum storage_err err = activity_partition(core, day->site, day->user, &partition);
    if (err == STORAGE_OK) {
        err = take_back(reader, job, partition, ret_lost);
    }
    if (err == STORAGE_OK) {
        err = user_change_tell(reader, job, ret_lost);
    }
    if (err != STORAGE_OK) {
        return err;
    }
    activity_begin(&a, core, &reader->session, job->deadline_ms);
    (void)activity_were_kept(&a, day->site, partition, partition + 1, day->day, &day->oldest_day);
    return pipeline_answer(&a.pipe, job, ret_lost);
}

/* take_back.c - one bit is taken back: that a user did an action on a day.
 *
 * A fold may know from before that the bit is set, and then would not set the bit again.  The
 * script changes the generation of the partition's users, by which folds see that they must ask
 * again. */
#include "storage/redis/resp.h"
#include "storage/users/bitmaps.h"

enum take_back_answer {
    TAKE_BACK_OTHER_SETTINGS = -2, /* nothing was done: the data is kept with other settings */
};

static enum storage_err take_back(
    struct reader *reader, struct storage_job *job, unsigned partition, bool *ret_lost)
{
    struct take_back_job *day = &job->u.take_back;
    const char *tag = reader->core->partitions.tag[partition];
    char generation[ACTIVITY_GENERATION];
    struct pipeline p;
    struct key key;
    activity_new_generation(generation);
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct buffer *out = pipeline_script(&p, partition, SCRIPT_CLEAR_DAY, 3, 3);
    key_fixed(&key, tag, "state", SLICE(""));
    resp_word(out, key.p, key.n);
    key_user_index(&key, tag, day->site);
    resp_word(out, key.p, key.n);
    key_activity(&key, tag, day->site, day->action, day->day);
    resp_word(out, key.p, key.n);
    resp_text(out, reader->core->cfg);
    resp_word(out, day->user.p, day->user.n);
    resp_text(out, generation);
    const struct reply *reply = pipeline_ask(&p, true);
    int64_t answer = reply == NULL ? 0 : reply_integer(reply, TAKE_BACK_OTHER_SETTINGS);
    enum storage_err err = pipeline_answer(&p, job, ret_lost);
    day->sent = day->sent || err == STORAGE_UNKNOWN;
    return answer == TAKE_BACK_OTHER_SETTINGS ? STORAGE_CONFIG : err;
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
    if (err != STORAGE_OK) {
        return err;
    }
    activity_begin(&a, core, &reader->session, job->deadline_ms);
    (void)activity_were_kept(&a, day->site, partition, partition + 1, day->day, &day->oldest_day);
    return pipeline_answer(&a.pipe, job, ret_lost);
}

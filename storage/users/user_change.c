#include "storage/users/user_change.h"

#include "storage/base/random_id.h"
#include "storage/redis/resp.h"

#define OTHER_SETTINGS (-2)

enum storage_err user_change_run(struct reader *reader, struct storage_job *job,
    const struct user_change *change, int64_t *ret_answer, bool *ret_lost)
{
    const char *tag = reader->core->partitions.tag[change->partition];
    char generation[ACTIVITY_GENERATION];
    struct pipeline p;
    struct key key;
    random_id(generation, sizeof(generation));
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct buffer *out =
        pipeline_script(&p, change->partition, change->script, 2 + change->n_keys, 4);
    key_put(out, tag, "state");
    resp_slice(out, key_user_index(&key, tag, change->site));
    for (size_t i = 0; i < change->n_keys; i++) {
        resp_word(out, change->keys[i].p, change->keys[i].n);
    }
    resp_text(out, reader->core->cfg);
    resp_slice(out, change->user);
    resp_text(out, generation);
    resp_slice(out, change->site);
    const struct reply *reply = pipeline_ask(&p, true);
    *ret_answer = reply == NULL ? *ret_answer : reply_integer(reply, OTHER_SETTINGS);
    enum storage_err err = pipeline_answer(&p, job, ret_lost);
    return *ret_answer == OTHER_SETTINGS ? STORAGE_CONFIG : err;
}

/* If partition 0 has no state, it has no ids either, so no answer is remembered. */
enum storage_err user_change_tell(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    char generation[ACTIVITY_GENERATION];
    struct pipeline p;
    random_id(generation, sizeof(generation));
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct buffer *out = pipeline_script(&p, 0, SCRIPT_USERS_CHANGED, 1, 2);
    key_put(out, reader->core->partitions.tag[0], "state");
    resp_text(out, reader->core->cfg);
    resp_text(out, generation);
    (void)pipeline_ask(&p, false);
    return pipeline_answer(&p, job, ret_lost);
}

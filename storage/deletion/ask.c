/* ask.c - jobs that write a deletion down, or tell how far a deletion is. */
#include "storage/base/random_id.h"
#include "storage/read/operation.h"

#include <stdio.h>

#include "storage/deletion/list.h"
#include "storage/redis/resp.h"
#include "storage/schema/deletion_record.h"
#include "storage/schema/hashed_event.h"

/* An operation of a reader that is under way. */
struct deletion_ask {
    struct core *core;
    struct deletion_job *job;
    struct key field;
    struct pipeline pipe;
};

static void deletion_begin(struct deletion_ask *ask, struct reader *reader, struct storage_job *job)
{
    ask->core = reader->core;
    ask->job = &job->u.deletion;
    ask->job->exists = ask->job->deleting = false;
    ask->job->done = 0;
    deletion_field_print(&ask->field, &ask->job->target);
    pipeline_init(&ask->pipe, &reader->session, job->deadline_ms);
    pipeline_keep_order(&ask->pipe);
}

/* Ask whether the site has had events. */
static void ask_site(struct deletion_ask *ask)
{
    struct slice site = ask->job->target.site;
    unsigned partition =
        partition_of(&ask->core->partitions, page_hash(site, (struct slice){NULL, 0}));
    struct buffer *out = pipeline_command(&ask->pipe, partition, "SISMEMBER", 2);
    key_put(out, ask->core->partitions.tag[partition], "sites");
    resp_slice(out, site);
}

static bool take_site(struct deletion_ask *ask)
{
    uint64_t is = 0;
    bool ok = pipeline_number(&ask->pipe, &is);
    ask->job->exists = is != 0;
    return ok;
}

/* Ask for the time and for the deletion's record. */
static void ask_record(struct deletion_ask *ask)
{
    (void)pipeline_command(&ask->pipe, 0, "TIME", 0);
    struct buffer *out = pipeline_command(&ask->pipe, 0, "HGET", 2);
    deletion_list_put(ask->core, out);
    resp_word(out, ask->field.p, ask->field.n);
}

/* Take the time and the record.  *ret_over: there is a record, and its deletion is over. */
static bool take_record(struct deletion_ask *ask, bool *ret_over)
{
    struct deletion_record record;
    *ret_over = false;
    const struct reply *reply = pipeline_take(&ask->pipe);
    if (reply == NULL) {
        return false;
    }
    int64_t now_us = reply_time_us(reply);
    core_time_of(ask->core, 0, now_us);
    reply = pipeline_take(&ask->pipe);
    if (reply == NULL) {
        return false;
    }
    if (reply->type == REPLY_NIL) {
        return true;
    }
    if (!deletion_record_parse(reply->text, &record)) {
        return pipeline_foreign(&ask->pipe, "a list of deletions");
    }
    *ret_over = deletion_is_over(&record, now_us / 1000);
    ask->job->deleting = !*ret_over;
    ask->job->done = *ret_over ? 0 : (double)record.done / DELETION_DONE;
    ask->job->exists = ask->job->exists || ask->job->deleting;
    return true;
}

/* Write the record down, in place of one that is over.  A record that another request has written
 * meanwhile stays.  A full Redis takes the record, too: a deletion makes room. */
static bool write_record(struct deletion_ask *ask, bool is_over)
{
    struct deletion_record record = {.until_ms = 0};
    char value[DELETION_VALUE];
    random_id(record.id, sizeof(record.id));
    deletion_record_print(&record, value);
    struct buffer *out = pipeline_script(&ask->pipe, 0, SCRIPT_SMALL_WRITE, 1, 3);
    deletion_list_put(ask->core, out);
    resp_text(out, is_over ? "HSET" : "HSETNX");
    resp_word(out, ask->field.p, ask->field.n);
    resp_text(out, value);
    return pipeline_ask(&ask->pipe, true) != NULL;
}

/* Count the deletions that are under way. */
static bool count_records(struct deletion_ask *ask, uint64_t *ret)
{
    struct buffer *out = pipeline_command(&ask->pipe, 0, "HLEN", 1);
    deletion_list_put(ask->core, out);
    return pipeline_send(&ask->pipe, false) && pipeline_number(&ask->pipe, ret);
}

static bool deletion_read(struct deletion_ask *ask, bool *ret_over)
{
    ask_site(ask);
    ask_record(ask);
    return pipeline_send(&ask->pipe, false) && take_site(ask) && take_record(ask, ret_over);
}

static bool deletion_start(struct deletion_ask *ask)
{
    bool is_over;
    uint64_t n = 0;
    if (!deletion_read(ask, &is_over)) {
        return false;
    }
    if (!ask->job->exists || ask->job->deleting) {
        return true;
    }
    if (!count_records(ask, &n)) {
        return false;
    }
    if (n >= DELETIONS_MAX && !is_over) {
        (void)snprintf(ask->pipe.detail, sizeof(ask->pipe.detail), "%d deletions are under way",
            DELETIONS_MAX);
        return pipeline_fail(&ask->pipe, STORAGE_FULL);
    }
    ask->job->deleting = write_record(ask, is_over) && deletion_list_learn(ask->core, &ask->pipe);
    wake_up(&ask->core->rollup_wake);
    return ask->job->deleting;
}

enum storage_err deletion_start_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct deletion_ask ask;
    deletion_begin(&ask, reader, job);
    (void)deletion_start(&ask);
    return pipeline_answer(&ask.pipe, job, ret_lost);
}

enum storage_err deletion_look_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct deletion_ask ask;
    bool is_over;
    deletion_begin(&ask, reader, job);
    /* A client that is told of the end may send events of the site to this process at once. */
    (void)(deletion_read(&ask, &is_over) &&
           (ask.job->deleting || deletion_list_learn(ask.core, &ask.pipe)));
    return pipeline_answer(&ask.pipe, job, ret_lost);
}

enum storage_err deletions_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct pipeline p;
    pipeline_init(&p, &reader->session, job->deadline_ms);
    (void)deletion_list_learn(reader->core, &p);
    return pipeline_answer(&p, job, ret_lost);
}

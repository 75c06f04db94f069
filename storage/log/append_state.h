/* append_state.h - what the appender holds: entries, and commands whose replies are awaited.
 *
 * Layer: storage, private to append.c (entries and Redis's replies), append_send.c (the commands),
 * held.c (which entries are safe), append_jobs.c (entries and clients) and acknowledge.c (entries
 * and replicas).
 * Belongs to the writer's thread.
 */
#ifndef STORAGE_LOG_APPEND_STATE_H
#define STORAGE_LOG_APPEND_STATE_H

#include "storage/core/session.h"
#include "storage/job/queue.h"
#include "storage/log/entry.h"
#include "storage/log/unfolded.h"

#define UNDER_WAY_MAX 2 /* new entries */

/* Of the memory for commands, so much stays for the next ones. */
#define APPEND_OUT_KEPT (512 * 1024)

/* A command whose reply is awaited. */
enum append_command { COMMAND_APPEND, COMMAND_HEARTBEAT, COMMAND_WAIT };
struct append_sent {
    enum append_command command;
    struct log_entry *entry; /* of COMMAND_APPEND: held until then */
    int64_t sent_ms;
};

struct appender {
    struct core *core;
    struct unfolded *unfolded;
    unsigned place, partition; /* of the log: see core_log_partition() */
    char id[LOG_ID_TEXT + 1];  /* of the log; "": none is registered */
    char era[LOG_ID_TEXT + 1];
    bool is_gone; /* the id is dead */

    struct log_entry *first,
        *last;              /* held, in order of number: answered ones, then the open ones.. */
    struct log_entry *open; /* ..from this one on; NULL: all are answered */
    /* The first one that is not acknowledged (acknowledge.h): `open`, or before it; NULL: all are.
     */
    struct log_entry *unacknowledged;
    /* The first one that a crash of Redis may take, as far as is known: `open`, or before it; NULL:
     * none is. */
    struct log_entry *unsafe;
    uint64_t next_n;
    size_t n_sent;            /* entries under way */
    bool is_taking;           /* the connection has taken an entry, and refused none since */
    bool may_jump;            /* the first one held is sent with leave to jump */
    enum storage_err refusal; /* why the last refused entry was */
    bool told_refusal;        /* and nothing was appended since */

    struct append_sent
        *sent; /* [sent_first .. sent_first + n_awaited): replies come in this order */
    size_t sent_first, n_awaited, sent_capacity;
    size_t n_waits;           /* of COMMAND_WAIT among those */
    int64_t lag_ms;           /* since when too few replicas acknowledge; 0: enough do */
    int64_t wrote_ms;         /* sending of the newest heartbeat that it has answered */
    int64_t beat_ms;          /* of the last heartbeat */
    int64_t hold_until_ms;    /* send nothing before: Redis asked for patience */
    struct standing standing; /* of a cluster: of this server alone */
    struct entry_scratch scratch;
    struct buffer out;
    size_t n_out;          /* commands in out */
    struct job_queue done; /* answered, their err is set */
};

/* Append the name of a key of the log's partition to a->out. */
void append_put_key(struct appender *a, const char *name, const char *suffix);

/* The first entry that Redis, or a replica, works on. */
static inline const struct log_entry *append_under_way(const struct appender *a)
{
    return a->core->config.ack_replicas > 0 ? a->unacknowledged : a->open;
}

/* What the connection proves of its server: of one server it counts for all that core knows. */
struct standing *append_standing(struct appender *a);

/* Put @entry behind the last one: it is open. */
void held_append(struct appender *a, struct log_entry *entry);

/* @entry was taken out of the list. */
void held_forget(struct appender *a, const struct log_entry *entry);

/* Tell core_may_lose() since when there is one that was acknowledged and is not safe. */
void held_show(const struct appender *a);

/* @job is done with @err: appender_answer_late() or appender_answer_done() will tell.  An entry
 * outlives its requests: a client may be answered 504 while the entry is still appended. */
void appender_mark_done(struct appender *a, struct storage_job *job, enum storage_err err);

/* So are all jobs of @entry that are not answered yet; with STORAGE_OK those with a key are told
 * what their records said. */
void appender_mark_all_done(struct appender *a, struct log_entry *entry, enum storage_err err);

/* Answer the jobs that are done. */
void appender_answer_done(struct appender *a);

/* Give up the last entry held, if it was never acknowledged, nothing of it is in Redis and nothing
 * can be under way: its jobs are done with @err, and its number is free.  False: it is none of
 * these. */
bool appender_give_up_last(struct appender *a, enum storage_err err);

#endif

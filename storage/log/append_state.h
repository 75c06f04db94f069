/* append_state.h - what the appender holds: entries, and commands whose replies are awaited.
 *
 * Layer: storage, private to append.c (entries and Redis's replies), append_send.c (the commands),
 * held.c (which entries are safe), append_jobs.c (entries and clients) and acknowledge.c (entries
 * and replicas).
 * Belongs to the writer's thread.
 */
#ifndef STORAGE_LOG_APPEND_STATE_H
#define STORAGE_LOG_APPEND_STATE_H

#include "storage/job/queue.h"
#include "storage/log/entry.h"
#include "storage/log/unfolded.h"
#include "storage/session/session.h"

#define UNDER_WAY_MAX 2 /* so many new entries are under way at most */

/* The buffer of commands keeps so many bytes for the next ones. */
#define APPEND_OUT_KEPT (512 * 1024)

/* A command whose reply is awaited. */
enum append_command { COMMAND_APPEND, COMMAND_HEARTBEAT, COMMAND_WAIT };
struct append_sent {
    enum append_command command;
    struct log_entry *entry; /* an owned reference; NULL: the command is no COMMAND_APPEND */
    int64_t sent_ms;         /* CLOCK_MONOTONIC */
};

struct appender {
    struct core *core;
    struct unfolded *unfolded;
    unsigned place, partition; /* where the log lies: see core_log_partition() */
    char id[LOG_ID_TEXT + 1];  /* the log's; "": none is registered */
    char era[LOG_ID_TEXT + 1]; /* the connection's */
    bool is_gone;              /* the log was closed, and its id is never used again */

    /* The entries that are held, an owned list in order of number: the answered ones come first. */
    struct log_entry *first, *last;
    /* The first entry that is not answered; NULL: all are answered. */
    struct log_entry *open;
    /* The first entry that is not acknowledged (acknowledge.h): `open`, or an earlier one; NULL:
     * all are acknowledged. */
    struct log_entry *unacknowledged;
    /* The first entry that a crash of Redis may take, as far as is known: `open`, or an earlier
     * one; NULL: there is none. */
    struct log_entry *unsafe;
    uint64_t next_n;          /* the number of the next entry */
    size_t n_sent;            /* entries under way */
    bool is_taking;           /* the connection has taken an entry, and refused none since */
    bool may_jump;            /* the first entry is sent with leave to jump */
    enum storage_err refusal; /* why the last refused entry was refused; STORAGE_OK: none was */
    bool told_refusal; /* operators were told of a refusal, and no entry was appended since */

    /* Commands that were sent, [sent_first .. sent_first + n_awaited), in the order of replies. */
    struct append_sent *sent; /* owned */
    size_t sent_first, n_awaited, sent_capacity;
    size_t n_waits; /* how many of these commands are a COMMAND_WAIT */
    /* All instants are CLOCK_MONOTONIC. */
    int64_t lag_ms;           /* since when too few replicas acknowledge; 0: enough do */
    int64_t wrote_ms;         /* when the newest heartbeat was sent that Redis has answered */
    int64_t beat_ms;          /* when the last heartbeat was sent */
    int64_t hold_until_ms;    /* nothing is sent before, because Redis has just refused an entry */
    struct standing standing; /* in a cluster: what this server's answers prove */
    struct entry_scratch scratch;
    struct buffer out;     /* commands that are sent next */
    size_t n_out;          /* how many commands `out` has */
    struct job_queue done; /* jobs whose err is set, and that must be told */
};

/* Append to a->out, as a word, the key @name with @suffix in the log's partition. */
void append_put_key(struct appender *a, const char *name, const char *suffix);

/* The first entry whose answer or replicas are awaited.  NULL: there is none. */
static inline const struct log_entry *append_under_way(const struct appender *a)
{
    return a->core->config.ack_replicas > 0 ? a->unacknowledged : a->open;
}

/* What the connection's answers prove of its server.  With one server that is what the core knows.
 */
struct standing *append_standing(struct appender *a);

/* Put @entry behind the last entry.  It is open. */
void held_append(struct appender *a, struct log_entry *entry);

/* @entry was taken out of the list: its bytes are held no more. */
void held_forget(struct appender *a, const struct log_entry *entry);

/* Tell core_may_lose() since when there is an entry that was answered and is not safe. */
void held_show(const struct appender *a);

/* All jobs of @entry that are not answered yet are done with @err.  With STORAGE_OK those with a
 * key are told what their records said. */
void appender_mark_all_done(struct appender *a, struct log_entry *entry, enum storage_err err);

/* Answer the jobs that are done. */
void appender_answer_done(struct appender *a);

/* Give up the last entry, if it was never answered, nothing of it is in Redis and no copy can be
 * under way: its jobs are done with @err, and its number is free.  False: there is no such entry.
 */
bool appender_give_up_last(struct appender *a, enum storage_err err);

#endif

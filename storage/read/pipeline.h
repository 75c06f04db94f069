/* pipeline.h - a conversation with Redis: commands are sent together, replies taken in order.
 *
 * Layer: storage.  One owner: the thread whose session it is.
 *
 * pipeline_command() or pipeline_script() begins a command, and the caller appends its words to the
 * buffer that they return.  pipeline_send() sends all commands that were begun.  pipeline_take()
 * takes the reply to one command, in order; more commands may be sent before the last reply was
 * taken.
 *
 * Where several servers share the partitions, each command goes to the server of its partition
 * (session/dispatcher.h).  A cursor of SSCAN or the like is good only on the server that gave it.
 * So if the servers of partitions have changed since the pipeline was begun, a pipeline that scans
 * ends as after a lost connection, and the operation begins anew.
 *
 * The first fault stays in `err`, and the operation answers with it.  An error reply does not cost
 * the connection: the replies behind it are taken and dropped, and the connection stays usable.
 * What a fault means for commands that write:
 *
 *   nothing of them was applied                            the fault's own error
 *   some were answered, or applied, and others not         STORAGE_UNKNOWN
 *   they were sent, and the connection broke or hung       STORAGE_UNKNOWN
 *   the only one was refused to the end, as its slot is
 *   being moved                                            STORAGE_LATE
 */
#ifndef STORAGE_READ_PIPELINE_H
#define STORAGE_READ_PIPELINE_H

#include "storage/base/compiler.h"
#include "storage/job/job.h"
#include "storage/session/session.h"

#define PIPELINE_DETAIL 96 /* bytes: Redis's own words, cut to fit */

struct pipeline {
    struct session *session; /* connected */
    int64_t deadline_ms;     /* CLOCK_MONOTONIC */
    struct buffer out;       /* without a dispatcher: commands that are not sent yet */
    size_t n;                /* commands in out, or begun with the dispatcher */
    unsigned group;          /* with a dispatcher: the partition whose group of commands is open */
    size_t n_group;          /* commands in that group; 0: none is open */
    bool keeps_order, stays; /* see pipeline_keep_order() and pipeline_stay() */
    bool scans;              /* a command with a cursor was begun */
    uint64_t changes;        /* the dispatcher's number of changes when the pipeline began */
    size_t awaited;          /* replies still to come */
    bool writes;             /* the commands under way write */
    bool applied;            /* a write was answered without an error */
    bool lost;               /* the connection must be closed */
    enum storage_err err;
    char detail[PIPELINE_DETAIL]; /* why Redis refused a command; "" else */
};

/* @session is connected, and outlives the pipeline.  All replies must come by @deadline_ms, of
 * CLOCK_MONOTONIC.  pipeline_end() or pipeline_answer() must follow. */
void pipeline_init(struct pipeline *p, struct session *session, int64_t deadline_ms);

/* Begin the command @name about keys of @partition.  A command without keys goes to the partition's
 * server.  The caller appends @n words to the buffer that is returned. */
struct buffer *pipeline_command(struct pipeline *p, unsigned partition, const char *name, size_t n);

/* Begin a script.  The caller appends @n_keys keys, of @partition, and then @n_args arguments. */
struct buffer *pipeline_script(struct pipeline *p, unsigned partition, enum script script,
    size_t n_keys, size_t n_args) MUST_CHECK;

/* Begin @n commands about keys of @partition: the caller appends the whole commands.  Without
 * pipeline_keep_order() @n is 1. */
struct buffer *pipeline_commands(struct pipeline *p, unsigned partition, size_t n);

/* From now on the commands about one partition that are sent together are carried out in their
 * order.  Where several servers share the partitions, commands about different partitions may be
 * carried out in any order. */
void pipeline_keep_order(struct pipeline *p);

/* @stays: from now on commands go only to servers whose connections have stood since the pipeline
 * began, and none is sent on to another server.  Else the pipeline ends as after a lost connection.
 * So a command that says "all before it is done" is carried out where all before it was done.  With
 * one server that is so anyway. */
void pipeline_stay(struct pipeline *p, bool stays);

/* Send the commands that were begun.  @writes: if one of them is sent and not answered, the outcome
 * is STORAGE_UNKNOWN.  False for reads, and for writes that are repeated anyway.  Returns false
 * after a fault: see err. */
bool pipeline_send(struct pipeline *p, bool writes) MUST_CHECK;

/* Take the next reply, which is valid until the next call.  NULL after a fault: see err. */
const struct reply *pipeline_take(struct pipeline *p) MUST_CHECK;

/* Take the next reply, which must be a number of at least 0; nil counts as 0.  False after a fault:
 * see err. */
bool pipeline_number(struct pipeline *p, uint64_t *ret) MUST_CHECK;

/* Send the one command that was begun, and take its reply.  NULL after a fault: see err. */
const struct reply *pipeline_ask(struct pipeline *p, bool writes);

/* The operation ends with @err, unless there was a fault before.  Always false. */
static inline bool pipeline_fail(struct pipeline *p, enum storage_err err)
{
    if (p->err == STORAGE_OK) {
        p->err = p->applied ? STORAGE_UNKNOWN : err;
    }
    return false;
}

/* A reply is not what tallyd has written: the operation ends with STORAGE_REFUSED, and the detail
 * says that @what ("a bitmap") holds foreign data.  Always false. */
bool pipeline_foreign(struct pipeline *p, const char *what);

/* End the pipeline: the replies still to come are taken, and memory is freed.  Returns what the
 * operation answers.  *ret_lost becomes true if the connection must be closed. */
enum storage_err pipeline_end(struct pipeline *p, bool *ret_lost);

/* pipeline_end() for @job: job->detail gets the words with which Redis refused a command. */
enum storage_err pipeline_answer(
    struct pipeline *p, struct storage_job *job, bool *ret_lost) MUST_CHECK;

#endif

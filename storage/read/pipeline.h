/* pipeline.h - a conversation with Redis: commands are sent together, replies taken in order.
 *
 * Layer: storage.  One owner: the thread whose session it is.
 *
 * A command is begun with pipeline_command or pipeline_script, and its words are appended to the
 * buffer that those return.  pipeline_send sends all that was begun.  pipeline_take takes one reply
 * for each command, in order; more commands may be sent before the last reply was taken.
 *
 * Where several servers share the partitions, each command goes to the server of its partition
 * (core/dispatcher.h).  A cursor of SSCAN or the like is good on the server alone that gave it.  So
 * if commands went elsewhere since the pipeline was begun, one that scans ends as after a lost
 * connection, and the operation begins anew.
 *
 * The first fault stays in `err`: it is what the operation answers.  An error reply does not cost
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
#include "storage/core/session.h"
#include "storage/job/job.h"

#define PIPELINE_DETAIL 96 /* bytes: Redis's own words, cut to fit */

struct pipeline {
    struct session *session; /* connected */
    int64_t deadline_ms;
    struct buffer out; /* for one server */
    size_t n;          /* commands in out, or begun with the dispatcher */
    unsigned group;    /* with a dispatcher: the partition whose group of commands is open */
    size_t n_group;    /* commands in that group; 0: none is open */
    bool keeps_order, stays;
    bool scans;       /* a command with a cursor was begun */
    uint64_t changes; /* of the dispatcher's connections, when it began */
    size_t awaited;   /* replies still to come */
    bool writes;      /* the commands under way write */
    bool applied;     /* a write was answered */
    bool lost;        /* the connection is of no use any more */
    enum storage_err err;
    char detail[PIPELINE_DETAIL]; /* why Redis refused a command; "" else */
};

/* @session is connected, and lives longer.  pipeline_end or pipeline_answer must follow. */
void pipeline_init(struct pipeline *p, struct session *session, int64_t deadline_ms);

/* Begin a command about keys of @partition: its name.  A command without keys goes to the
 * partition's server.  The caller appends @n words to the buffer that is returned. */
struct buffer *pipeline_command(struct pipeline *p, unsigned partition, const char *name, size_t n);

/* Begin a script: the caller appends @n_keys keys, of @partition, and then @n_args arguments. */
struct buffer *pipeline_script(struct pipeline *p, unsigned partition, enum script script,
    size_t n_keys, size_t n_args) MUST_CHECK;

/* Begin @n commands about keys of @partition, which the caller appends whole.  More than one only
 * where the order is kept. */
struct buffer *pipeline_commands(struct pipeline *p, unsigned partition, size_t n);

/* From now on the commands about one partition that are sent together are carried out in their
 * order.  Where several servers share the partitions others may be carried out in another one. */
void pipeline_keep_order(struct pipeline *p);

/* @stays: what is sent goes only to servers that have stood since the pipeline began, as far as
 * connections and the topology tell, and nothing is sent on to another server.  Else the pipeline
 * ends as after a lost connection.  So a command that says "all before it is done" is carried out
 * where all before it was done.  One server's connection is such a server anyway. */
void pipeline_stay(struct pipeline *p, bool stays);

/* Send what was begun.  @writes: commands that are sent and not answered leave a doubt that the
 * caller is to be told of.  False for reads, and for writes that somebody will do again anyway.
 * Returns false after a fault: see err. */
bool pipeline_send(struct pipeline *p, bool writes) MUST_CHECK;

/* The next reply, valid until the next call.  NULL after a fault: see err. */
const struct reply *pipeline_take(struct pipeline *p) MUST_CHECK;

/* The next reply, which must be a number of at least 0; no reply at all (nil) counts as 0. */
bool pipeline_number(struct pipeline *p, uint64_t *ret) MUST_CHECK;

/* Send the one command that was begun, and take its reply. */
const struct reply *pipeline_ask(struct pipeline *p, bool writes);

/* The operation ends with @err, unless there was a fault before.  Always false. */
static inline bool pipeline_fail(struct pipeline *p, enum storage_err err)
{
    if (p->err == STORAGE_OK) {
        p->err = p->applied ? STORAGE_UNKNOWN : err;
    }
    return false;
}

/* A reply is not of the kind that tallyd has put there: @what ("a bitmap") holds foreign data.
 * Always false. */
bool pipeline_foreign(struct pipeline *p, const char *what);

/* The operation is over.  The replies still to come are taken, and memory is given back.  Returns
 * what to answer.  *ret_lost becomes true where the connection must be closed. */
enum storage_err pipeline_end(struct pipeline *p, bool *ret_lost);

/* pipeline_end for @job, which gets the words with which Redis refused a command. */
enum storage_err pipeline_answer(
    struct pipeline *p, struct storage_job *job, bool *ret_lost) MUST_CHECK;

#endif

/* pipeline.h - commands of a reader operation and their replies, with what became of them.
 *
 * Layer: storage, private to reader operations.  One owner.
 * Commands are appended to `out` and counted; pipeline_send sends them, pipeline_take takes their
 * replies one by one.  After a fault (an error reply, a lost connection) taking goes on until all
 * replies are there, so that the connection stays usable, and `err` is what to answer:
 * what was sent and not answered, or applied in part, is STORAGE_UNKNOWN if it writes.
 */
#ifndef STORAGE_READ_PIPELINE_H
#define STORAGE_READ_PIPELINE_H

#include "storage/read/operation.h"

struct pipeline {
    struct reader *reader;
    struct storage_job *job;
    struct buffer out;
    size_t n;       /* commands in out */
    size_t awaited; /* replies still to come */
    bool writes;    /* the commands under way write */
    bool applied;   /* a write was answered */
    bool lost;      /* the connection is of no use any more */
    enum storage_err err;
};

void pipeline_init(struct pipeline *p, struct reader *reader, struct storage_job *job);
void pipeline_release(struct pipeline *p);

/* Send what is in out.  False: see err. */
bool pipeline_send(struct pipeline *p, bool writes);

/* The next reply, valid until the next call.  NULL: see err; the other replies are taken too. */
const struct reply *pipeline_take(struct pipeline *p);

/* A reply is not what it should be: keys hold what is not ours.  Always false. */
bool pipeline_foreign(struct pipeline *p);

/* The operation is over: what to answer. */
enum storage_err pipeline_end(struct pipeline *p, bool *ret_lost);

#endif

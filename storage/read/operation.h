/* operation.h - what a reader thread can be asked to do: one function an operation.
 *
 * Layer: storage, private to it.  The table stands in readers.c: a new operation is a file of its
 * own and a line there.
 */
#ifndef STORAGE_READ_OPERATION_H
#define STORAGE_READ_OPERATION_H

#include "storage/core/core.h"
#include "storage/core/session.h"

struct counter;

/* A reader thread's own. */
struct reader {
    struct core *core;
    struct session session; /* connected, when an operation runs */
    struct counter *counter;
};

/* Do @job, by its deadline.  *ret_lost (false before): the connection is lost, or in an unknown
 * state; it will be closed. */
typedef enum storage_err reader_op_fn(
    struct reader *reader, struct storage_job *job, bool *ret_lost);

/* Copy Redis's own words, an error reply, into job->detail. */
void reader_op_detail(struct storage_job *job, const struct reply *reply);

#endif

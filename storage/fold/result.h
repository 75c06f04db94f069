/* result.h - how counting has ended.
 *
 * Layer: storage.  Thread-safe: no state.
 */
#ifndef STORAGE_FOLD_RESULT_H
#define STORAGE_FOLD_RESULT_H

#include "storage/core/core.h"
#include "storage/session/server.h"

/* How a transaction has ended; the further down, the worse. */
enum fold_end {
    FOLD_DONE,
    FOLD_AGAIN, /* nothing was done, and the transaction begins anew: transaction_run() does that */
    FOLD_ERR,   /* nothing was done, because of `err` */
    FOLD_STALE, /* nothing was done: the entries of `log` must be read from its stream */
    FOLD_LOST,  /* the connection must be given up, and all may be done, or nothing */
};
struct fold_result {
    enum fold_end end;
    enum storage_err err; /* with FOLD_ERR */
    uint32_t log;         /* with FOLD_STALE: the log's number in the batch */
};

/* Nothing was done, because of @err. */
static inline struct fold_result fold_failed(enum storage_err err)
{
    return (struct fold_result){.end = FOLD_ERR, .err = err};
}

/* @reply is an error: count it, and tell operators of a refusal.  *err becomes its error, unless an
 * earlier reply has set *err.  False: the connection must be given up. */
bool fold_note_error(struct core *core, const struct reply *reply, enum storage_err *err);

/* As fold_note_error(), for @reply of @server to a transaction of @partition.  Notes also what the
 * reply says of the server, and of a slot that is half moved. */
bool fold_refused(struct core *core, struct server *server, unsigned partition,
    const struct reply *reply, enum storage_err *err);

#endif

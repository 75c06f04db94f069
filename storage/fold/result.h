/* result.h - how counting has ended.
 *
 * Layer: storage.  Thread-safe: no state.
 */
#ifndef STORAGE_FOLD_RESULT_H
#define STORAGE_FOLD_RESULT_H

#include "storage/core/core.h"
#include "storage/core/server.h"

/* How counting has ended; the further down, the worse. */
enum fold_end {
    FOLD_DONE,
    FOLD_AGAIN, /* nothing was done: again, from the WATCH.  Never of a whole transaction */
    FOLD_ERR,   /* nothing was done, because of `err` */
    FOLD_STALE, /* nothing was done: read the entries of `log` from the stream, which mends it */
    FOLD_LOST,  /* the connection must be given up: done or not */
};
struct fold_result {
    enum fold_end end;
    enum storage_err err;
    uint32_t log; /* its number in the batch */
};

static inline struct fold_result fold_failed(enum storage_err err)
{
    return (struct fold_result){.end = FOLD_ERR, .err = err};
}

/* An error reply.  *err becomes the first one's.  False: the connection must be given up. */
bool fold_note_error(struct core *core, const struct reply *reply, enum storage_err *err);

/* The same, of @server about a transaction of @partition: also what it says of the server, and of a
 * slot that is half moved, is noted. */
bool fold_refused(struct core *core, struct server *server, unsigned partition,
    const struct reply *reply, enum storage_err *err);

#endif

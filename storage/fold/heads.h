/* heads.h - the register of logs: which logs there are, and how far each was written.
 *
 * Layer: storage, pure.  One owner.
 *
 * The hash t:{0}:heads has a field a log.  Its value is "n era time": the number of the last entry,
 * the random id of the connection that appended it, and when that was (ms of Redis's clock).  A log
 * that has no field there is closed, and all of it is counted.
 */
#ifndef STORAGE_FOLD_HEADS_H
#define STORAGE_FOLD_HEADS_H

#include "storage/log/entry.h"

struct log_head {
    char id[LOG_ID_TEXT + 1];
    char era[LOG_ID_TEXT + 1];
    uint64_t n;
    int64_t time_ms;
};

/* Zeroed it is empty. */
struct heads {
    struct log_head *heads; /* owned */
    size_t n, capacity;
};

/* Take the place of what was read before.  False: the reply to HGETALL is none of ours, or memory is
 * out; @heads is empty then. */
bool heads_take(struct heads *heads, const struct reply *reply) MUST_CHECK;
void heads_release(struct heads *heads);

/* NULL: there is no such log. */
const struct log_head *heads_find(const struct heads *heads, const char *id);

#endif

/* stand_in.h - what a unit test puts in the place of the clock and of Redis.
 *
 * The unit tests are linked with --wrap for the functions below (UNIT_WRAP in the Makefile).  A
 * member that is NULL leaves the real function in its place.  Each test is a process of its own, so
 * none meets the stand-ins of another.
 */
#ifndef TESTS_LIB_STAND_IN_H
#define TESTS_LIB_STAND_IN_H

#include <sys/statvfs.h>

#include "storage/fold/transaction.h"
#include "storage/redis/ask.h"
#include "storage/session/dispatcher.h"

struct stand_in {
    /* of monotonic_us() and monotonic_ms() */
    int64_t (*now_us)(void);
    /* of statvfs() */
    const struct statvfs *disk;
    /* of redis_ask() and redis_ask_all(): the reply to the next command in @out, whatever the
     * connection is.  NULL: the connection is lost. */
    const struct reply *(*answer)(const struct buffer *out, size_t i);
    /* of transaction_run() */
    struct fold_result (*transaction)(
        const struct batch *batch, struct fold_cuts cuts, int trim, struct heads *heads);
    /* of dispatcher_begin(): a group is begun; its commands go nowhere */
    void (*group)(unsigned partition, enum dispatcher_kind kind);
    /* of dispatcher_await(), with the one above: the next reply.  NULL: the connection is lost. */
    const struct reply *(*dispatched)(struct dispatcher *dispatcher);
    /* of session_open(): may it connect?  With it session_close() only forgets the connection.. */
    bool (*connect)(void);
    void (*closed)(void); /* ..and calls this */
};

extern struct stand_in stand_in;

/* A connection that is none. */
struct redis *stand_in_redis(void);

#endif

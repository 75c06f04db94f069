/* heads.h - the register of logs: which logs are open, and how far each was written.
 *
 * Layer: storage, pure.  One owner.
 *
 * The register is the hash t:{0}:heads (schema/log_state.h); in a cluster there is one in each
 * place where logs may lie.
 */
#ifndef STORAGE_FOLD_HEADS_H
#define STORAGE_FOLD_HEADS_H

#include <stddef.h>

#include "storage/base/compiler.h"
#include "storage/redis/reply.h"
#include "storage/schema/log_state.h"

/* Zeroed it is empty. */
struct heads {
    struct log_head *heads; /* owned */
    size_t n, capacity;
    int64_t asked_ms; /* when streams_look() asked for the heads, CLOCK_MONOTONIC */
};

/* Replace @heads by those in @reply, to HGETALL of the one register.  False: the reply is none of
 * ours, or memory is out; @heads is empty then. */
bool heads_take(struct heads *heads, const struct reply *reply) MUST_CHECK;

/* Add the heads in @reply, to HGETALL of the register at @place (core_log_partition()).  False: as
 * heads_take(). */
bool heads_add(struct heads *heads, unsigned place, const struct reply *reply) MUST_CHECK;
void heads_release(struct heads *heads);

/* The head of log @id, valid until @heads changes.  NULL: the log is not open. */
const struct log_head *heads_find(const struct heads *heads, const char *id);

#endif

/* heads.h - the register of logs: which logs are open, and how far each was written.
 *
 * Layer: storage, pure.  One owner.
 *
 * The register is the hash t:{0}:heads (log_state.h); in a cluster there is one in each place where
 * logs may lie.
 */
#ifndef STORAGE_SCHEMA_HEADS_H
#define STORAGE_SCHEMA_HEADS_H

#include "storage/job/error.h"
#include "storage/schema/log_state.h"

/* Zeroed it is empty. */
struct heads {
    struct log_head *all; /* owned */
    size_t n, capacity;
    uint64_t n_closed; /* how many logs were ever closed in the places that were added */
    int64_t asked_ms;  /* for the caller: when the heads were asked for, CLOCK_MONOTONIC */
};

/* Empty @heads.  Memory is kept. */
void heads_clear(struct heads *heads);
void heads_release(struct heads *heads);

/* Add the heads in @reply, to HGETALL of the register at @place (core_log_partition()).
 * STORAGE_REFUSED: the reply is none of ours.  STORAGE_NOMEM.  After either @heads is empty. */
enum storage_err heads_add(
    struct heads *heads, unsigned place, const struct reply *reply) MUST_CHECK;

/* The head of log @id, valid until @heads changes.  NULL: the log is not open.  The search begins
 * at @hint, the log's place in another list: as a rule logs stand in the same order. */
struct log_head *heads_find(const struct heads *heads, const char *id, size_t hint);

#endif

/* share.h - what one partition gets of a batch, in one transaction.
 *
 * Layer: storage, pure.  Belongs to the thread of a lane (lanes.h).
 *
 * The share of a partition is a run of its tasks.  share_begin() says which, share_write() and
 * share_take() ask Redis step by step, share_decide() merges in between what no cursor says is
 * counted, and share_write_commands() has it counted.
 */
#ifndef STORAGE_FOLD_SHARE_H
#define STORAGE_FOLD_SHARE_H

#include "storage/fold/batch.h"
#include "storage/fold/cut.h"
#include "storage/known/memory.h"
#include "storage/schema/partition_state.h"

/* What becomes of a log in a transaction, by its head. */
enum log_fate { LOG_COUNTS, LOG_GONE };

enum share_look {
    SHARE_FOLDS,   /* the share has something to count, or a cursor to move */
    SHARE_NOTHING, /* Redis has counted all of the share */
    SHARE_AGAIN,   /* what was remembered does not hold any more: begin anew, with the WATCH */
    SHARE_STALE,   /* the batch lacks entries that the partition has not counted */
    SHARE_CONFIG,  /* the data is kept with other settings */
    SHARE_EMPTIED, /* the partition has no state any more */
    SHARE_NOMEM,
};

struct share;

/* @core and @memory outlive the share.  NULL: out of memory. */
struct share *share_new(struct core *core, struct fold_memory *memory) MUST_CHECK;
void share_free(struct share *share); /* NULL is harmless */

/* The share gets @cut of @batch, which must stay until the share is done.  Behind SHARE_AGAIN the
 * same cut begins again: then the share rests on what it has read.  False: out of memory. */
bool share_begin(struct share *share, const struct batch *batch, const struct cut *cut) MUST_CHECK;

/* What a share asks, in this order, and all behind a WATCH of the partition's state. */
enum share_step {
    SHARE_STATE, /* the state, visitors, users, places of names */
    SHARE_MORE,  /* what the share can ask only by the answers to SHARE_STATE */
    /* share_decide() comes here. */
    SHARE_LAST,    /* the counters of old buckets, except those that a coarser bucket tells */
    SHARE_HOURS,   /* the counters of old hours that the days' answers do not tell */
    SHARE_MINUTES, /* the counters of old minutes that the hours' answers do not tell */
};

/* Has the share questions of SHARE_MORE, or of SHARE_LAST and the steps behind it?  Both are known
 * from share_begin() on. */
bool share_asks_more(const struct share *share);
bool share_asks_last(const struct share *share);

/* Append the questions of @step to @out, and return how many they are: 0 or more.  If memory is
 * out, out->failed is set. */
size_t share_write(struct share *share, enum share_step step, struct buffer *out);

/* Take @reply, to question @i of @step, which was written last.  False: it is no answer to that, or
 * memory is out. */
bool share_take(
    struct share *share, enum share_step step, size_t i, const struct reply *reply) MUST_CHECK;

/* Decide what of the share is counted, and as what.  @fates: of the batch's logs.  @now_ms: Redis's
 * clock, UTC, read behind the WATCH.  With SHARE_STALE, *ret_log is the number of the log that
 * lacks entries. */
enum share_look share_decide(struct share *share, const enum log_fate fates[BATCH_LOGS],
    int64_t now_ms, uint32_t *ret_log) MUST_CHECK;

/* All questions are answered.  False: a closed hour may have too many names with those of the
 * share.  Then the transaction begins anew, with the WATCH: the partition's next share reads first
 * what the counters of such hours have. */
bool share_fits(struct share *share) MUST_CHECK;

/* Append the commands that count the share to @out, and return how many they are.  If memory is
 * out, out->failed is set. */
size_t share_write_commands(struct share *share, struct buffer *out);

/* For fold.lua, which compares the state with what was read: append the number of fields, and for
 * each its name and its value, as words.  Returns how many words these are. */
size_t share_write_expected(const struct share *share, struct buffer *out);

/* The commands were carried out, with the answers @replies.  Appends to @ret_due the logs of seen/
 * that are due. */
void share_done(struct share *share, const struct reply *replies, struct buffer *ret_due);

/* The commands were carried out: put what Redis now has into the memory.  No other share may rest
 * on the memory meanwhile, between its share_begin() and its share_decide(): the memory is bounded,
 * and forgets one user for another. */
void share_learn(struct share *share);

/* The commands were carried out: add what the share counted to the figures of /metrics. */
void share_show(const struct share *share, struct storage_stats *stats);

#endif

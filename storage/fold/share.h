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
    SHARE_FOLDS,
    SHARE_NOTHING, /* all of it is counted */
    SHARE_AGAIN,   /* what is remembered does not hold any more: once more, from the WATCH */
    SHARE_STALE,   /* the batch lacks entries that the partition has not counted */
    SHARE_CONFIG,  /* the data is kept with other settings */
    SHARE_EMPTIED, /* the partition has no state any more */
    SHARE_NOMEM,
};

struct share;

struct share *share_new(struct core *core, struct fold_memory *memory) MUST_CHECK;
void share_free(struct share *share);

/* False: out of memory.  @batch must stay until the share is done.  Behind SHARE_AGAIN the same cut
 * begins again: then the share goes by what it has read. */
bool share_begin(struct share *share, const struct batch *batch, const struct cut *cut) MUST_CHECK;

/* What is asked, in this order; all of it behind a WATCH of the partition's state. */
enum share_step {
    SHARE_STATE, /* the state, visitors, users, places of names */
    SHARE_MORE,  /* what can be asked only by these answers */
    /* share_decide() */
    SHARE_LAST,    /* what counters of old buckets have.. */
    SHARE_HOURS,   /* ..of hours that their days do not tell.. */
    SHARE_MINUTES, /* ..of minutes that their hours do not tell */
};

/* Has the share questions of SHARE_MORE; of SHARE_LAST and behind it?  Known from share_begin()
 * on. */
bool share_asks_more(const struct share *share);
bool share_asks_last(const struct share *share);

/* Append the questions of a step to @out; returns how many, which may be none. */
size_t share_write(struct share *share, enum share_step step, struct buffer *out);

/* The answer to question @i of the step that was written last.  False: it is none. */
bool share_take(
    struct share *share, enum share_step step, size_t i, const struct reply *reply) MUST_CHECK;

/* @fates: of the batch's logs.  @now_ms: Redis's clock, read behind the WATCH.  With SHARE_STALE,
 * *ret_log is the log that lacks entries. */
enum share_look share_decide(struct share *share, const enum log_fate fates[BATCH_LOGS],
    int64_t now_ms, uint32_t *ret_log) MUST_CHECK;

/* All is answered.  False: a closed hour may have too many names with those of the
 * share.  Once more, from the WATCH: the next share of the partition reads first what these hours
 * have. */
bool share_fits(struct share *share) MUST_CHECK;

/* Append the commands to @out; returns how many. */
size_t share_write_commands(struct share *share, struct buffer *out);

/* What the state was expected to be, for fold.lua: append for each field its name and its value as
 * words, behind their number; returns how many words. */
size_t share_write_expected(const struct share *share, struct buffer *out);

/* The commands' answers are @replies.  Appends to @ret_due the logs of seen/ that are due. */
void share_done(struct share *share, const struct reply *replies, struct buffer *ret_due);

/* It was done: put what Redis now has into the memory.  Not while another share rests on the
 * memory, that is, between its share_begin() and its share_decide(): the memory is bounded, and
 * forgets one user for another. */
void share_learn(struct share *share);

/* It was done: add what it came to to the figures of /metrics. */
void share_show(const struct share *share, struct storage_stats *stats);

#endif

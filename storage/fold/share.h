/* share.h - what one partition gets of a batch, in one transaction.
 *
 * Layer: storage, pure.  Belongs to the fold's thread.
 *
 * The share of a partition is a run of its tasks.  It goes through these steps:
 *
 *     share_begin             which tasks
 *     share_write_questions   what is asked of Redis before anything is decided, behind a WATCH of
 *     share_take              the partition's state; and the answers
 *     share_write_more        what can be asked only by these answers, where share_asks_more()
 *     share_take_more
 *     share_decide            merges what no cursor says is counted, by the state that was read
 *     share_write_last        what counters of old buckets have, where share_asks_last(); and the
 *     share_take_last         answers
 *     share_write_rest        the same of those that were asked for together, and are not all new
 *     share_fits              may it go on?
 *     share_write_minutes     the same of old minutes; the answers are taken by share_take_last
 *     share_write_commands    the commands of the transaction
 *     share_done, _learn      the transaction was carried out
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

/* Append the questions to @out; returns how many. */
size_t share_write_questions(struct share *share, struct buffer *out);

/* The answer to question @i.  False: it is none. */
bool share_take(struct share *share, size_t i, const struct reply *reply) MUST_CHECK;

/* Has the share further questions, behind the first ones?  Known from share_begin() on. */
bool share_asks_more(const struct share *share);

/* The same for those: append them to @out, and take the answer to question @i. */
size_t share_write_more(struct share *share, struct buffer *out);
bool share_take_more(struct share *share, size_t i, const struct reply *reply) MUST_CHECK;

/* @fates: of the batch's logs.  @now_ms: Redis's clock, read behind the WATCH.  With SHARE_STALE,
 * *ret_log is the log that lacks entries. */
enum share_look share_decide(struct share *share, const enum log_fate fates[BATCH_LOGS],
    int64_t now_ms, uint32_t *ret_log) MUST_CHECK;

/* Are old buckets to be expected, so that there are questions once the share is decided?  Known
 * from share_begin() on. */
bool share_asks_last(const struct share *share);

/* Append those questions to @out, which may be none, and take the answer to the next one. */
size_t share_write_last(struct share *share, struct buffer *out);
size_t share_write_rest(struct share *share, struct buffer *out);
size_t share_write_minutes(struct share *share, struct buffer *out);
bool share_take_last(struct share *share, const struct reply *reply) MUST_CHECK;

/* share_write_last() is answered.  False: a closed hour may have too many names with those of the
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

/* How many actions this share found to be the first of their user's day, as somebody asks. */
size_t share_firsts(const struct share *share);

/* How many events this share counted for their sites: each event is counted by one share. */
size_t share_events(const struct share *share);

/* How many counts of names this share put together, because the names had no place (places.h). */
size_t share_capped(const struct share *share);

#endif

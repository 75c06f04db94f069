/* fold_month.h - the log and the filter of a month in Redis, while the log is folded.
 *
 * Layer: storage, private to seen/fold_log.c.  Belongs to its thread.
 *
 * Each step is one command, whose reply is awaited (seen/layout.h says what lies where).  A step
 * that writes compares the filter's `ver`, and sets another one.
 */
#ifndef STORAGE_SEEN_FOLD_MONTH_H
#define STORAGE_SEEN_FOLD_MONTH_H

#include "storage/base/compiler.h"
#include "storage/schema/partition_state.h"
#include "storage/seen/filter.h"
#include "storage/session/session.h"

/* How a step went. */
enum fold_step {
    STEP_DONE,
    STEP_YIELD, /* another process folds, or Redis refuses: leave the log for another time */
    STEP_LOST,  /* the connection must be closed */
};

/* A month that is folded.  Zeroed but for `core`: no month yet. */
struct fold_month {
    struct core *core;
    struct session *session; /* at the server of the partition */
    struct buffer out;       /* owned */
    int64_t deadline_ms;     /* CLOCK_MONOTONIC: for all steps together */
    unsigned partition;
    const char *tag;
    struct slice site;
    struct bucket month;
    struct seen_filter filter; /* its `ver` is the one that the next step expects */
};

/* Turn to @month of @site.  @session is connected to the server of @partition. */
void fold_month_begin(struct fold_month *m, struct session *session, unsigned partition,
    struct slice site, struct bucket month, int64_t deadline_ms);

/* The bytes of a log: @which is "log" or "old".  0: there is none. */
enum fold_step fold_month_length(struct fold_month *m, const char *which, size_t *ret) MUST_CHECK;

/* Seal the log: rename it to `old`, unless there is one already. */
enum fold_step fold_month_seal(struct fold_month *m) MUST_CHECK;

/* Read up to @most fingerprints of the sealed log, from byte @from on.  *ret_n 0: none are left. */
enum fold_step fold_month_read_piece(struct fold_month *m, size_t from, size_t most,
    uint64_t *fingerprints, size_t *ret_n) MUST_CHECK;

/* Read the filter, without its bits, into `filter`. */
enum fold_step fold_month_read_filter(struct fold_month *m) MUST_CHECK;

/* Read a string of bits of layer @index into @ret, filled up with zeros to its greatest length. */
enum fold_step fold_month_read_bits(struct fold_month *m, const struct bloom_layer *layer,
    unsigned index, uint64_t segment, struct buffer *ret) MUST_CHECK;

/* A random id for the filter. */
struct ver fold_month_draw_ver(void);

/* Write a string of bits, with the items that `filter` has of layer @index now. */
enum fold_step fold_month_write_bits(
    struct fold_month *m, unsigned index, uint64_t segment, struct slice bits) MUST_CHECK;

/* Delete the sealed log, all of which is in the filter, and set the filter's `ver` to @ver. */
enum fold_step fold_month_end(struct fold_month *m, const struct ver *ver) MUST_CHECK;

#endif

/* fold.h - the thread that counts what was acknowledged.
 *
 * Layer: storage.
 *
 * A request is acknowledged when its entry stands in a log (log/entry.h).  What is in logs is
 * counted later, many entries at a time, by any process that needs the counts.  That is a fold.
 * Each process folds its own log, from memory, at the first of these:
 *
 *     half a second after the oldest entry that waits
 *     20,000 events, or 4 MB, wait: more would merge a little better, and be seen later
 *     a question comes: it waits for what was acknowledged before it
 *
 * The pause after a fold is as long as the fold was, a quarter of a second at most, unless much
 * waits.  While questions come, large requests are acknowledged between two folds, and not in the
 * middle of one: then a question waits for the fold that is under way, and not for the next one,
 * too.  A question waits for the logs of other processes too.  Without a question the thread folds
 * such a log, in the order of arrival, with its own where little waits there; else when the log's
 * writer was not heard of for 1.5 s: its process died, or sleeps.  In its first seconds a process
 * folds all logs: it may be the heir of one that was killed, whose events arrived before its own.
 *
 * While folds get on, at most 40,000 events are acknowledged ahead of them.  While questions come,
 * each of them waits for these events.  So they are then at most twice what folds count in 25 ms.
 * While folds stall, log/unfolded.h bounds what waits.
 *
 * Folds are exact: see transaction.h.  TALLYD_TEST_FOLD_HOLD, milliseconds in the environment,
 * holds each fold up for so long (tests/README.md).
 */
#ifndef STORAGE_FOLD_FOLD_H
#define STORAGE_FOLD_FOLD_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/log/unfolded.h"

struct fold;
struct seen_fold;

/* Start the thread.  @unfolded holds what waits of this process's logs.  @core, @unfolded and
 * @seen_fold, which may be NULL, outlive the fold.  NULL: no memory, or no thread. */
struct fold *fold_start(
    struct core *core, struct unfolded *unfolded, struct seen_fold *seen_fold) MUST_CHECK;

/* Stop the thread, and free @fold.  The caller has set core->stopping, and no other thread uses
 * @fold any more.  What is not folded stays in the log. */
void fold_stop(struct fold *fold);

/* The functions below are thread-safe. */

/* An entry was put into the `unfolded` of fold_start().  Wakes the thread only if the thread did
 * not know that something waits, or if much waits: so a call is cheap. */
void fold_wake(struct fold *fold);

/* Count all that was acknowledged before @before_us (CLOCK_MONOTONIC, not in the future), by this
 * process and by others.  Waits until @deadline_ms.  STORAGE_OK: all is counted.  STORAGE_CONFIG
 * and STORAGE_STATE_LOST at once; any other error at the deadline: what kept the thread from it, or
 * STORAGE_LATE. */
enum storage_err fold_catch_up(
    struct fold *fold, int64_t before_us, int64_t deadline_ms) MUST_CHECK;

#endif

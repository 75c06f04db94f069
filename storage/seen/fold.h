/* fold.h - the thread that folds logs of what users saw into Bloom filters.
 *
 * Layer: storage.  See seen/layout.h for what lies where.
 *
 * Any process may fold any log at any time, or die while it does.  The log (renamed to `old`) is
 * deleted only when all its fingerprints are in the bits.  Every step compares `ver` and changes
 * it, so of two processes that fold the same month one gives up.  A log is folded in pieces, so it
 * may have any length.
 *
 * The process whose transaction made a log pass a multiple of SEEN_LOG_BYTES is told to fold it.
 * If that process fails, or dies, the process that makes the log pass the next multiple is told.
 */
#ifndef STORAGE_SEEN_FOLD_H
#define STORAGE_SEEN_FOLD_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct seen_fold;

/* Start the thread.  NULL: no memory, or no thread. */
struct seen_fold *seen_fold_start(struct core *core) MUST_CHECK;

/* Stop the thread and free.  core->stopping is set before.  Logs that are not folded stay in Redis.
 */
void seen_fold_stop(struct seen_fold *fold);

/* Tell the thread that logs of @partition are due: @keys are their keys, each with a blank behind
 * it.  A key for which there is no room is dropped.  Thread-safe.  @fold may be NULL. */
void seen_fold_due(struct seen_fold *fold, unsigned partition, struct slice keys);

#endif

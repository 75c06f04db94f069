/* fold.h - the thread that folds logs of who saw what into Bloom filters.
 *
 * Layer: storage, private to it.  See seen/layout.h for what lies where.
 *
 * Any process may fold any log at any time, or die at it: the log (renamed to `old`) is deleted
 * only when all its fingerprints are in the bits, and every step compares `ver`, which every step
 * changes, so that of two who fold the same month one gives up.  A log is folded in pieces, so it
 * may have any length.
 *
 * Who is told: the process whose event made a log pass a multiple of SEEN_LOG_BYTES.  If it fails,
 * or dies, the one that passes the next multiple is told.
 */
#ifndef STORAGE_SEEN_FOLD_H
#define STORAGE_SEEN_FOLD_H

#include "storage/core/core.h"

struct seen_fold;

/* NULL: no memory, or no thread. */
struct seen_fold *seen_fold_start(struct core *core);
/* core->stopping is set.  What is not folded is left for another time. */
void seen_fold_stop(struct seen_fold *fold);

/* Logs of @partition are due: their keys, each with a blank behind it.  Thread-safe; what finds no
 * room is dropped.
 * @fold may be NULL. */
void seen_fold_due(struct seen_fold *fold, unsigned partition, struct slice keys);

#endif

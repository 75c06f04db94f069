/* round.h - one round of folding: everything that waits is counted.
 *
 * Layer: storage.  Belongs to the fold's thread.
 */
#ifndef STORAGE_FOLD_ROUND_H
#define STORAGE_FOLD_ROUND_H

#include "storage/fold/round_state.h"

/* False: out of memory; the caller releases all the same. */
bool round_init(struct round *round, struct core *core, struct unfolded *unfolded,
    struct seen_fold *seen_fold) MUST_CHECK;
void round_release(struct round *round);

/* Fold what was answered, or stands in the logs in reach, when the round begins.  Connects if there
 * is no connection.  Anything but STORAGE_OK: some is not folded, and may be tried again. */
enum storage_err round_run(struct round *round, enum round_reach reach);

/* Behind a round of ROUND_ALL that ended well, not in a cluster: read the heads.  Is all folded
 * that the logs of other processes have now? */
bool round_others_are_folded(struct round *round) MUST_CHECK;

#endif

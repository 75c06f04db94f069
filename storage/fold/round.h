/* round.h - one round of folding: everything that waits is counted.
 *
 * Layer: storage.  Belongs to the fold's thread.
 */
#ifndef STORAGE_FOLD_ROUND_H
#define STORAGE_FOLD_ROUND_H

#include "storage/fold/round_state.h"

/* @core, @unfolded and @seen_fold, which may be NULL, outlive the round.  False: out of memory; the
 * caller releases @round all the same. */
bool round_init(struct round *round, struct core *core, struct unfolded *unfolded,
    struct seen_fold *seen_fold) MUST_CHECK;
void round_release(struct round *round);

/* Fold what this process's logs were answered, and what the logs in reach have, when the round
 * begins.  Connects if there is no connection, and waits for Redis.  Anything but STORAGE_OK: some
 * entries are not folded, and the next round tries them again. */
enum storage_err round_run(struct round *round, enum round_reach reach);

/* Read the heads again, behind a round of ROUND_ALL that ended well, and not in a cluster: is all
 * folded that the logs of other processes have now?  False also if the connection is lost. */
bool round_others_are_folded(struct round *round) MUST_CHECK;

#endif

/* rollup.h - the thread that turns minutes into hours, hours into days, days into months.
 *
 * Layer: storage.  Source: ARCHITECTURE.md, "Rolling up"; see rollup/pass.h for one bucket's
 * pass. One process leads at a time (leader.h); that saves work, what makes passes safe is
 * compare-and-set on each partition's state.
 *
 * A pass may be asked for: then the 30 s that late events are given after an hour's end are not
 * waited for.  Where another process leads, the wish is left in t:{0}:wish; the leader finds it
 * when it renews its lease, and takes it away when its pass is over.
 */
#ifndef STORAGE_ROLLUP_ROLLUP_H
#define STORAGE_ROLLUP_ROLLUP_H

#include "storage/core/core.h"

struct leader;
struct rollup;

/* Start the thread; @leader lives longer.  NULL: no memory or no thread. */
struct rollup *rollup_start(struct core *core, struct leader *leader);

/* Take a job (STORAGE_ROLLUP_RUN): answered after a pass, or when it is late.  Thread-safe.  False:
 * not taken. */
bool rollup_submit(struct rollup *rollup, struct storage_job *job, enum storage_err *ret_err);

/* Answer the jobs that wait, and take no more. */
void rollup_drain(struct rollup *rollup);

/* Stop after the step at hand, free.  core->stopping is set. */
void rollup_stop(struct rollup *rollup);

#endif

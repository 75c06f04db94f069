/* rollup.h - the thread that turns minutes into hours, hours into days, and days into months.
 *
 * Layer: storage.  Source: storage/rollup/README.md, "A pass".
 *
 * Counts are written by the minute.  Once an hour is over, a pass (rollup/pass.h) makes the hour's
 * counts of its minutes, which may then expire; likewise days and months.  One process leads at a
 * time (lock/leader.h).  That saves work; what makes passes safe is compare-and-set on each
 * partition's state.
 *
 * An hour's pass waits 30 s for late events.  A request for a pass does not.  Where another process
 * leads, the request becomes a wish in t:{0}:wish: the leader finds it when it renews its lock, and
 * takes it away when its pass is over.
 */
#ifndef STORAGE_ROLLUP_ROLLUP_H
#define STORAGE_ROLLUP_ROLLUP_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct leader;
struct rollup;

/* Start the thread; @leader lives longer.  NULL: no memory or no thread. */
struct rollup *rollup_start(struct core *core, struct leader *leader) MUST_CHECK;

/* Take a job (STORAGE_ROLLUP_RUN).  It is answered after a pass, or when it is late.  Thread-safe.
 * False: not taken, and *ret_err says why. */
bool rollup_submit(struct rollup *rollup, struct storage_job *job, enum storage_err *ret_err);

/* Answer the jobs that wait, and take no more. */
void rollup_drain(struct rollup *rollup);

/* Stop the thread after the step at hand, and free.  core->stopping is set before. */
void rollup_stop(struct rollup *rollup);

#endif

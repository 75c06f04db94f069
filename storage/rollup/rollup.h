/* rollup.h - the thread that turns minutes into hours, hours into days, and days into months.
 *
 * Layer: storage.  Source: storage/rollup/README.md, "A pass".
 *
 * Counts are written by the minute.  Once an hour is over, a pass (rollup/pass.h) makes the hour's
 * counts of its minutes, which may then expire.  Days and months are made in the same way.  One
 * process leads at a time (lock/leader.h).  That saves work; what makes passes safe is
 * compare-and-set on each partition's state.
 *
 * An hour's pass waits 30 s for late events.  A pass on request does not.  If another process
 * leads, the request becomes a wish in t:{0}:wish: the leader finds the wish when it renews its
 * lock, and takes the wish away when its pass is over.
 */
#ifndef STORAGE_ROLLUP_ROLLUP_H
#define STORAGE_ROLLUP_ROLLUP_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct leader;
struct rollup;

/* Start the thread; @core and @leader outlive it.  NULL: no memory or no thread. */
struct rollup *rollup_start(struct core *core, struct leader *leader) MUST_CHECK;

/* Take a job (STORAGE_ROLLUP_RUN).  The job is answered after a pass, or at its deadline.
 * Thread-safe.  False: the job was not taken, and *ret_err says why. */
bool rollup_submit(struct rollup *rollup, struct storage_job *job, enum storage_err *ret_err);

/* Answer the jobs that wait, and take no more.  Thread-safe. */
void rollup_drain(struct rollup *rollup);

/* Stop the thread after the step at hand, and free @rollup.  The caller has set core->stopping. */
void rollup_stop(struct rollup *rollup);

#endif

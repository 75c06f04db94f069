/* rollup.h - the thread that turns minutes into hours, hours into days, days into months.
 *
 * Layer: storage.  Source: PROTOCOL, "Rollup of one bucket"; see rollup_pass.h for one bucket's
 * pass. One process leads at a time: a lock (SET NX PX with a random token, released by
 * compare-and-delete).  The lock only saves work; what makes passes safe is compare-and-set on each
 * partition's state.
 */
#ifndef STORAGE_ROLLUP_H
#define STORAGE_ROLLUP_H

#include "storage/core.h"

struct rollup;

/* Start the thread.  NULL: no memory or no thread. */
struct rollup *rollup_start(struct core *core);

/* Stop after the step at hand, release the lock, free. */
void rollup_stop(struct rollup *rollup);

#endif

/* kept_state.h - does a partition of a cluster still have its state?  For readings beside it.
 *
 * Layer: storage.  One owner: the thread whose pipeline it is.
 *
 * A node that comes back empty answers as though nothing had been counted.  proved_read.h looks at
 * the state anyway; what reads other keys alone asks for the state behind them, in the same
 * pipeline: a key that is not there is an answer only where the state is there.
 *
 * With one Redis both do nothing.
 */
#ifndef STORAGE_READ_KEPT_STATE_H
#define STORAGE_READ_KEPT_STATE_H

#include "storage/core/core.h"
#include "storage/read/pipeline.h"

/* Begin the command. */
void kept_state_ask(struct core *core, struct pipeline *p, unsigned partition);

/* Take its reply.  False: the state is lost, and the pipeline has failed with a sentence; or after
 * another fault. */
bool kept_state_take(struct core *core, struct pipeline *p, unsigned partition) MUST_CHECK;

#endif

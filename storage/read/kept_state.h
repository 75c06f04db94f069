/* kept_state.h - does a partition of a cluster still have its state?
 *
 * Layer: storage.  One owner: the thread whose pipeline it is.
 *
 * A node that comes back empty answers as though nothing had been counted.  proved_read.h looks at
 * the state anyway.  An operation that reads other keys alone asks for the state behind them, in
 * the same pipeline: that a key is missing is an answer only if the state is there.
 *
 * With one Redis both functions do nothing.
 */
#ifndef STORAGE_READ_KEPT_STATE_H
#define STORAGE_READ_KEPT_STATE_H

#include "storage/core/core.h"
#include "storage/read/pipeline.h"

/* Begin the command that asks for the state of @partition. */
void kept_state_ask(struct core *core, struct pipeline *p, unsigned partition);

/* Take the reply to that command.  False: the pipeline has failed, with STORAGE_STATE_LOST and a
 * sentence in p->detail if the state is lost. */
bool kept_state_take(struct core *core, struct pipeline *p, unsigned partition) MUST_CHECK;

#endif

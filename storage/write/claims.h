/* claims.h - the thread that claims Idempotency-Keys and stores what became of them.
 *
 * Layer: storage.  Its connection is its own.  What many requests ask for together goes into one
 * pipeline (a script a node, or a key in a cluster), as the writer's group commit does it.
 *
 * A claim's answer is stored over the connection that claimed it, or not without another look: as
 * long as that connection stands Redis has not gone back, so what the writer was told to be applied
 * still is.  If it was lost all parts of the request are sent again first (their markers make those
 * that hold do nothing).
 */
#ifndef STORAGE_WRITE_CLAIMS_H
#define STORAGE_WRITE_CLAIMS_H

#include "storage/core/core.h"

/* Start the thread.  @resubmit sends a STORAGE_WRITE to the writer once more; false: it was not
 * taken.  NULL: no memory or no thread. */
struct claims *claims_start(
    struct core *core, bool (*resubmit)(void *data, struct storage_job *job), void *data);

/* Take a STORAGE_CLAIM or STORAGE_RELEASE.  Thread-safe.  False: not taken. */
bool claims_submit(struct claims *claims, struct storage_job *job, enum storage_err *ret_err);

/* Name the attempt of @claim, unless it has a name.  Thread-safe. */
void claims_name(struct claims *claims, struct claim *claim);

/* Answer all that was taken until @deadline_ms, then the rest with an error. */
void claims_drain(struct claims *claims, int64_t deadline_ms);

/* Stop the thread and free; nothing may be lent any more. */
void claims_stop(struct claims *claims);

#endif

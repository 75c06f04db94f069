/* status.h - read from Redis how far all partitions are rolled up, and which process leads.
 *
 * Layer: storage.  Thread-safe; the session belongs to the caller's thread.
 */
#ifndef STORAGE_ROLLUP_STATUS_H
#define STORAGE_ROLLUP_STATUS_H

#include "storage/core/core.h"
#include "storage/session/session.h"

/* Read the status into @ret, and the partitions' states into the core's views, by @deadline_ms
 * (CLOCK_MONOTONIC).  @session is connected, or has a dispatcher; *ret_lost becomes true if the
 * connection must be closed.  @ret is of use only with STORAGE_OK. */
enum storage_err rollup_status_read(struct core *core, struct session *session, int64_t deadline_ms,
    struct rollup_job *ret, bool *ret_lost);

#endif

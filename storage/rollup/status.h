/* status.h - how far all partitions are rolled up, and who leads, read from Redis.
 *
 * Layer: storage.  Thread-safe, but for the session, which is the caller's.
 */
#ifndef STORAGE_ROLLUP_STATUS_H
#define STORAGE_ROLLUP_STATUS_H

#include "storage/core/core.h"
#include "storage/core/session.h"

/* Read it into @ret and into the core's views, until @deadline_ms.  *ret_lost is set if the
 * connection must be closed. */
enum storage_err rollup_status_read(struct core *core, struct session *session, int64_t deadline_ms,
    struct rollup_job *ret, bool *ret_lost);

#endif

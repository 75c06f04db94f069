/* workers.h - roll up the partitions of several servers at the same time.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * The partitions of a cluster are rolled up server by server: a worker is a thread with a
 * connection to each of its servers, and does one partition after the other.  There are 16 workers
 * at most; with more servers a worker has several.  A server that cannot be reached stops its own
 * partitions, and the others go on.  What is left is done at the next run.
 */
#ifndef STORAGE_ROLLUP_WORKERS_H
#define STORAGE_ROLLUP_WORKERS_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/session/session.h"

struct rollup_workers;

/* Make the workers, without threads.  NULL: no memory. */
struct rollup_workers *rollup_workers_new(struct core *core) MUST_CHECK;
void rollup_workers_free(struct rollup_workers *workers); /* NULL is harmless */

/* Do the work in @partition, over @session, which is connected to the partition's server.  Called
 * on the workers' threads, at the same time.  False: something is left. */
typedef bool rollup_work_fn(void *data, unsigned partition, struct session *session);

/* Call @work for every partition whose server can be reached, and wait until all calls have ended.
 * False: something is left in some partition. */
bool rollup_workers_run(
    struct rollup_workers *workers, rollup_work_fn *work, void *data) MUST_CHECK;

#endif

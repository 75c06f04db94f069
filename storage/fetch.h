/* fetch.h - has readers fetch what writes need of Redis and this process does not have yet.
 *
 * Layer: storage.  Thread-safe.
 *
 * A write is checked and hashed by what this process remembers, before the write is handed on.
 * Storage asks its own readers for what is missing:
 *
 *     what                           where it is remembered   when it is fetched
 *     secrets of rotation periods    core/period_secrets.h    before a period begins; else the
 *                                                             first page view of the period waits
 *     sites that are being deleted   core/deletions.h         when the last look is old; no write
 *                                                             waits
 *
 * The rollup's thread also looks every second which sites are being deleted.  That does not happen
 * during a long pass, nor in a process that takes no part in rollups.
 */
#ifndef STORAGE_FETCH_H
#define STORAGE_FETCH_H

#include "storage/core/core.h"
#include "storage/readers.h"

/* Called on a reader's thread for the job that waited.  If @err is an error, job->detail is its
 * reason. */
typedef void fetched_fn(void *data, struct storage_job *job, enum storage_err err);

/* Have the secrets that @list misses fetched by job->deadline_ms, and call @fetched for @job.  If
 * the result is not STORAGE_OK, @fetched is not called. */
enum storage_err fetch_periods(struct readers *readers, struct storage_job *job,
    const struct period_list *list, fetched_fn *fetched, void *data) MUST_CHECK;

/* To be called when a write comes: have fetched what the next writes may need.  Does not wait.
 * What fails is tried again at a later write. */
void fetch_ahead(struct core *core, struct readers *readers);

#endif

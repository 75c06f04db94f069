/* fetch.h - what writes need of Redis, and this process does not have yet, readers fetch.
 *
 * Layer: storage.  Thread-safe.
 *
 * A write is checked and hashed by what this process remembers, before it is handed on.  Storage
 * asks its own readers for what is missing:
 *
 *     what                           where it is remembered   when it is fetched
 *     secrets of rotation periods    core/period_secrets.h    before a period begins; else the
 *                                                             first page view of the period waits
 *     sites that are being deleted   core/deletions.h         when the last look is old; nothing
 *                                                             waits
 *
 * The rollup's thread also looks what is being deleted, every second.  It does not during a long
 * pass, nor in a process that takes no part in rollups.
 */
#ifndef STORAGE_FETCH_H
#define STORAGE_FETCH_H

#include "storage/core/core.h"
#include "storage/readers.h"

/* Called on a reader's thread for the job that waited.  With an error job->detail is the reason. */
typedef void fetched_fn(void *data, struct storage_job *job, enum storage_err err);

/* Have the secrets that @list misses fetched by job->deadline_ms, and call @fetched for @job.
 * Anything but STORAGE_OK: @fetched is not called. */
enum storage_err fetch_periods(struct readers *readers, struct storage_job *job,
    const struct period_list *list, fetched_fn *fetched, void *data) MUST_CHECK;

/* A write came: have fetched what the next ones may need.  Does not wait; what fails is tried
 * again. */
void fetch_ahead(struct core *core, struct readers *readers);

#endif

/* period_fetch.h - page views whose addresses need a secret that this process does not have.
 *
 * Layer: storage.  Thread-safe.
 *
 * Addresses are hashed before a write is handed on, with the secrets of their rotation periods
 * (core/period_secrets.h).  They are at hand but for the first page view of a period: then a reader
 * thread fetches them, and the write goes on afterwards.
 */
#ifndef STORAGE_PERIOD_FETCH_H
#define STORAGE_PERIOD_FETCH_H

#include "storage/core/core.h"
#include "storage/readers.h"

/* period_secrets_find() for a write; none are needed where visitors do not rotate. */
bool period_list_find(
    struct core *core, const struct write_job *write, struct period_list *ret) MUST_CHECK;

/* Called on a reader's thread.  With an error job->detail is the reason. */
typedef void period_fetched_fn(void *data, struct storage_job *job, enum storage_err err);

/* Fetch what is missing in @list, by @deadline_ms, and call @fetched for @job.  Takes the list.
 * Anything but STORAGE_OK: @fetched is not called. */
enum storage_err period_fetch(struct readers *readers, struct storage_job *job,
    struct period_list list, int64_t deadline_ms, period_fetched_fn *fetched,
    void *data) MUST_CHECK;

/* Have the secret of the next period made, if the period begins within an hour.  Where that fails,
 * the first page view of the period makes it. */
void period_fetch_next(struct core *core, struct readers *readers);

#endif

/* storage.h - counts events in Redis, and answers questions: the only door to storage/.
 *
 * Layer: storage.  Thread-safe: any thread may call any function, but open, drain and close belong
 * to one thread.
 *
 * Storage keeps everything in Redis.  Storage knows no HTTP and no JSON, and does not log: errors,
 * statistics and one callback tell what happens.
 *
 * A caller asks with a job (job/job.h), which lies in the caller's request.  storage_submit() lends
 * the job, and everything that the job points to, to storage until done() is called.  done() is
 * called exactly once, on a thread of storage or within storage_submit().  done() must not block,
 * submit a job or close the storage.  Every job has a deadline (CLOCK_MONOTONIC) and is answered by
 * then.
 */
#ifndef STORAGE_STORAGE_H
#define STORAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/job/config.h"
#include "storage/job/job.h"
#include "storage/job/stats.h"

struct storage;
struct zone;

/* Start the threads.  Connecting goes on in the background, so Redis need not be there yet.
 * @config and its strings are copied.  The caller owns the storage and ends it with
 * storage_close().  NULL: *ret_error names the fault, a static text. */
struct storage *storage_open(
    const struct storage_config *config, const char **ret_error) MUST_CHECK;

/* Lend @job to storage.  If storage cannot take the job, it calls done() with the error at once, on
 * this thread. */
void storage_submit(struct storage *storage, struct storage_job *job);

/* Begin with the jobs that were submitted with `more_follow`.  The writer is woken once for all of
 * them, and the more jobs the writer finds, the less each costs.  Jobs may begin before that. */
void storage_flush(struct storage *storage);

/* The ingestion guard limits how many events may come in (job/write_job.h).  The functions about
 * the guard do not wait.  If there is no guard (GUARD_OFF), all events are admitted, and *ret_state
 * says only that.
 *
 * May events with these charges be written?  Takes all of the charges, or none.  *ret_state tells
 * how the limit stands, unless the verdict is GUARD_FAILED. */
enum guard_verdict storage_guard_try(struct storage *storage, const struct guard_charge *charges,
    size_t n, struct limit_state *ret_state) MUST_CHECK;

/* Does this process know that the guard would not admit one event of @who?  Then a request can be
 * refused before its body is decoded, and *ret_state tells how the limit stands. */
bool storage_guard_closed(
    struct storage *storage, struct slice who, struct limit_state *ret_state) MUST_CHECK;

/* Have the guard use @limit from now on, a funnel that passes limit_check().  What was taken stays
 * taken, and this process keeps what it has taken from Redis ahead. */
void storage_guard_set_limit(struct storage *storage, const struct limit *limit);

/* Tell how the limit of @who stands, by what this process knows, without taking anything.  The
 * whole limit is free to somebody of whom this process's guard has never heard. */
void storage_guard_peek(struct storage *storage, struct slice who, struct limit_state *ret_state);

/* The system's time zone of the IANA name @name, good until storage_close().  Reads a file the
 * first time.  NULL: there is no such zone, and *ret_fault says what is wrong, a static text. */
const struct zone *storage_zone(
    struct storage *storage, struct slice name, const char **ret_fault) MUST_CHECK;

/* The reporting zone of @site, in which its hours, days and months are cut.  Never NULL. */
const struct zone *storage_site_zone(struct storage *storage, struct slice site);

/* Redis's clock in UTC milliseconds, or a little less: the time in a reply, plus the monotonic time
 * since.  0: no reply was seen yet. */
int64_t storage_now_ms(struct storage *storage);

/* The oldest time (UTC) of an event that is still kept at @now_s, whichever zone the event's site
 * has.  INT64_MIN: some level is kept for ever. */
int64_t storage_oldest_s(struct storage *storage, int64_t now_s);

/* At @now_s, the days of a site's zone that end behind the result are kept, with their activity.
 * INT64_MIN: all days are kept. */
int64_t storage_days_from_s(struct storage *storage, int64_t now_s);

#define STORAGE_NO_WRITER UINT64_MAX /* no connection can write, or too few replicas answer */

/* A number that changes whenever Redis refuses to write, or STORAGE_NO_WRITER.  *ret_err is the
 * reason of the last change.  Of a cluster the number is 0: what one server refuses says nothing of
 * the others. */
uint64_t storage_write_fault(struct storage *storage, enum storage_err *ret_err);

/* The milliseconds for which the oldest page view has waited that this process has acknowledged and
 * that is not counted yet.  0: none waits. */
int64_t storage_log_age_ms(struct storage *storage);

/* May a visitor without a name, or an address, count twice in @window?  That is so if the window
 * reaches over a border of rotation periods.  The other case is a late period, which was counted
 * into again after its secret was thrown away (core/period_secrets.h).  What this process knows of
 * late periods is as new as the last answer about a window. */
bool storage_spans_rotation(struct storage *storage, struct window window);

/* By how many seconds the rollups lag behind.  The lag begins at the instant up to which the
 * buckets of @level are complete in the slowest partition, and ends with the last bucket that is
 * over.  The result is also 0 before Redis's clock was seen. */
int64_t storage_rollup_lag_s(struct storage *storage, enum level level);

/* The statistics of this storage (job/stats.h), which live until storage_close(). */
struct storage_stats *storage_stats(struct storage *storage);

/* The process is about to stop: end the jobs that ask for a pass of the rollups, which may wait for
 * another process, with STORAGE_SHUTDOWN.  Other jobs are taken and done as before. */
void storage_quiesce(struct storage *storage);

/* Refuse new jobs, and finish those that are lent until @deadline_ms (CLOCK_MONOTONIC).  Then end
 * the jobs that are left with STORAGE_SHUTDOWN or STORAGE_UNKNOWN.  Afterwards no job is lent any
 * more. */
void storage_drain(struct storage *storage, int64_t deadline_ms);

/* Stop the threads and free everything.  storage_drain() comes before.  NULL is harmless. */
void storage_close(struct storage *storage);

#endif

/* storage.h - counts in Redis: the only door to storage/.
 *
 * Layer: storage.  Thread-safe: any thread may call any function, but open, drain and close belong
 * to one thread.
 *
 * Storage counts events and answers questions about them.  It keeps everything in Redis.  It knows
 * no HTTP and no JSON, and it does not log: it tells what happens through errors, statistics and
 * one callback.
 *
 * What is asked of storage is a job (job/job.h), which lies in the caller's request.
 * storage_submit() lends the job, and everything it points to, to storage until done() is called.
 * That happens exactly once, on a thread of storage or within storage_submit().  done() must not
 * block, submit a job or close the storage.  Every job has a deadline (CLOCK_MONOTONIC) and is
 * answered by then.
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

/* Begin with the jobs that were submitted with `more_follow`: storage's thread is woken once for
 * all of them, and the more it finds the less each costs.  Jobs may be begun before that. */
void storage_flush(struct storage *storage);

/* The ingestion guard limits how many events may come in (job/write_job.h).  The next four
 * functions do not wait.  If there is no guard (GUARD_OFF), everything is admitted, and *ret_state
 * says nothing but that.
 *
 * May events with these charges be written?  Takes all of the charges, or none.  *ret_state tells
 * how the limit stands, unless the verdict is GUARD_FAILED. */
enum guard_verdict storage_guard_try(struct storage *storage, const struct guard_charge *charges,
    size_t n, struct limit_state *ret_state) MUST_CHECK;

/* Is it known that not even one event of @who would be admitted?  Then a request can be refused
 * before its body is decoded, and *ret_state tells how the limit stands. */
bool storage_guard_closed(
    struct storage *storage, struct slice who, struct limit_state *ret_state) MUST_CHECK;

/* Use another limit from now on: a funnel that passes limit_check().  What was taken stays taken,
 * and this process keeps what it has taken from Redis ahead. */
void storage_guard_set_limit(struct storage *storage, const struct limit *limit);

/* Tell how the limit of @who stands, by what is known here, without taking anything.  The whole
 * limit is free to somebody of whom the guard has never heard. */
void storage_guard_peek(struct storage *storage, struct slice who, struct limit_state *ret_state);

/* The system's time zone of that IANA name, good until storage_close().  Reads a file the first
 * time.  NULL: there is no such zone, and *ret_fault says what is wrong, a static text. */
const struct zone *storage_zone(
    struct storage *storage, struct slice name, const char **ret_fault) MUST_CHECK;

/* The reporting zone of @site, in which its hours, days and months are cut.  Never NULL. */
const struct zone *storage_site_zone(struct storage *storage, struct slice site);

/* Redis's clock in UTC milliseconds, or a little less: the time in a reply, plus the monotonic time
 * since.  0: no reply was seen yet. */
int64_t storage_now_ms(struct storage *storage);

/* The oldest time that an event can have and still be kept at @now_s, in whichever zone its site is
 * cut.  INT64_MIN: some level is kept for ever. */
int64_t storage_oldest_s(struct storage *storage, int64_t now_s);

/* At @now_s days of a site's zone are kept that end behind this, and their activity.
 * INT64_MIN: all are. */
int64_t storage_days_from_s(struct storage *storage, int64_t now_s);

/* A number that changes whenever Redis refuses to write.
 * *ret_err is the reason for its last change.  Of a cluster it stays the same: what one server
 * refuses says nothing of the others.  STORAGE_NO_WRITER: there is no connection for writing
 * now.
 */
#define STORAGE_NO_WRITER UINT64_MAX
uint64_t storage_write_fault(struct storage *storage, enum storage_err *ret_err);

/* For how long the oldest page view has waited that this process has acknowledged and that is not
 * counted yet, ms; 0: none waits. */
int64_t storage_log_age_ms(struct storage *storage);

/* May a visitor without a name, or an address, count twice in @window?  So it is where the window
 * reaches over a border of rotation periods, or where its period was late: counted again after its
 * secret was thrown away (core/period_secrets.h).  What is known of late periods is as new as the
 * last answer about a window. */
bool storage_spans_rotation(struct storage *storage, struct window window);

/* For how many seconds the rollups lag behind: from the instant up to which the buckets of @level
 * are complete in the slowest partition, to the end of the last bucket that is over.  Also 0 before
 * Redis's clock was seen. */
int64_t storage_rollup_lag_s(struct storage *storage, enum level level);

/* What storage counts about itself (job/stats.h).  Lives until storage_close(). */
struct storage_stats *storage_stats(struct storage *storage);

/* The process is about to stop: end jobs that may wait for another process, which are those for a
 * pass of the rollups, with STORAGE_SHUTDOWN.  Other jobs are taken and done as before. */
void storage_quiesce(struct storage *storage);

/* Refuse new jobs, and finish those that are lent until @deadline_ms (CLOCK_MONOTONIC).  Then end
 * what is left with STORAGE_SHUTDOWN or STORAGE_UNKNOWN.  Afterwards nothing is lent any more. */
void storage_drain(struct storage *storage, int64_t deadline_ms);

/* Stop the threads and free everything.  After storage_drain(); NULL is harmless. */
void storage_close(struct storage *storage);

#endif

/* storage.h - counts in Redis: the only door to storage/.
 *
 * Layer: storage.  Knows no HTTP and no JSON, and does not log: what happens is told through
 * errors, statistics and one callback.
 *
 * A job is embedded in the caller's request.  storage_submit() lends the job and everything it
 * points to to storage until done() is called, exactly once, on a thread of storage.  done() must
 * not block, submit or close.  Every job has a deadline (CLOCK_MONOTONIC) and is answered by then.
 *
 * Thread safety: all functions may be called from any thread, but open, drain and close from one.
 */
#ifndef STORAGE_STORAGE_H
#define STORAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/job/config.h"
#include "storage/job/hot_page.h"
#include "storage/job/job.h"
#include "storage/job/stats.h"

struct storage;
struct zone;

/* Start threads; connecting goes on in the background.  @config is copied, strings too.
 * On failure returns NULL and @ret_error names the fault (static text). */
struct storage *storage_open(
    const struct storage_config *config, const char **ret_error) MUST_CHECK;

/* Lend @job to storage.  If it cannot be taken, done() is called at once, on this thread, with the
 * error. */
void storage_submit(struct storage *storage, struct storage_job *job);

/* The ingestion guard, without waiting.  Where there is none (GUARD_OFF) all is admitted, and
 * *ret_state says nothing but that.
 *
 * May events with these charges be written?  All of them or none.  *ret_state tells how the limit
 * stands, but for GUARD_FAILED. */
enum guard_verdict storage_guard_try(struct storage *storage, const struct guard_charge *charges,
    size_t n, struct limit_state *ret_state) MUST_CHECK;

/* Is it known that not even one event of @who would be admitted?  So a request can be refused
 * before its body is decoded.  *ret_state is written if so. */
bool storage_guard_closed(struct storage *storage, struct slice who, struct limit_state *ret_state);

/* Another limit from now on: a funnel that passes limit_check.  What was taken stays taken; leases
 * that are out hold what they have. */
void storage_guard_set_limit(struct storage *storage, const struct limit *limit);

/* What is left to @who, as far as is known here: for answers to requests of which nothing is taken.
 * Somebody whom the guard never heard of has all of it. */
void storage_guard_peek(struct storage *storage, struct slice who, struct limit_state *ret_state);

/* The system's time zone of that IANA name; good until storage_close.  NULL: there is none, and
 * *ret_fault says what is wrong (static text).  May read a file, the first time. */
const struct zone *storage_zone(struct storage *storage, struct slice name, const char **ret_fault);

/* The reporting zone of @site: where its hours, days and months are cut. */
const struct zone *storage_site_zone(struct storage *storage, struct slice site);

/* A lower bound of Redis's clock, UTC milliseconds: a TIME seen in a reply and the monotonic time
 * since. 0 as long as no reply was seen. */
int64_t storage_now_ms(struct storage *storage);

/* The oldest time an event may have to be kept anywhere, in whichever zone its site is cut, given
 * @now_s: INT64_MIN if months are kept forever. */
int64_t storage_oldest_s(struct storage *storage, int64_t now_s);

/* A number that is another one whenever Redis has refused to write, or the connection for writing
 * was lost, and STORAGE_NO_WRITER while there is none; *ret_err: why it last changed.  Thread-safe.
 */
#define STORAGE_NO_WRITER UINT64_MAX
uint64_t storage_write_fault(struct storage *storage, enum storage_err *ret_err);
/* Seconds by which the readers' watermark of the slowest partition lies behind the last complete
 * bucket. */
int64_t storage_rollup_lag_s(struct storage *storage, enum level level);

/* The up to @limit hottest pages of the last half minute, as this process saw them.  False: out of
 * memory.  Give the list back with storage_hot_pages_release. */
bool storage_hot_pages(
    struct storage *storage, size_t limit, struct hot_page **ret, size_t *ret_n) MUST_CHECK;
void storage_hot_pages_release(struct hot_page *pages, size_t n);

/* Counters; see stats.h. */
struct storage_stats *storage_stats(struct storage *storage);

/* Finish what was lent until @deadline_ms (CLOCK_MONOTONIC), then answer what is left with
 * STORAGE_SHUTDOWN or STORAGE_UNKNOWN.  New jobs are refused.  Afterwards nothing is lent any more.
 */
void storage_drain(struct storage *storage, int64_t deadline_ms);

/* Stop the threads and free.  After storage_drain. */
void storage_close(struct storage *storage);

#endif

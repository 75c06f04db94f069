/* hot_pages.h - the pages that are written and read most, over the last half minute.
 *
 * Layer: storage.  Thread-safe: a lock for each core's counters.
 *
 * Each core counts for itself (space_saving.h), so threads seldom wait for each other.  Counting
 * goes in slots of 3 s.  The slot under way has 512 counters; of each of the nine slots before it
 * the 64 greatest counters are kept.  A list adds up all cores and slots.  A rate is off by at most
 * its error, either way: a counter may have taken over the count of another page, and a page may
 * have come while it had no counter.
 *
 * The whole site is not a page here: every event belongs to it, and every dashboard asks for it.
 * Neither is a named event.
 */
#ifndef STORAGE_HOT_HOT_PAGES_H
#define STORAGE_HOT_HOT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/job/hot_page.h"

#define HOT_SLOTS   10 /* slots of the window: nine that are over, and the one under way */
#define HOT_SLOT_MS 3000

struct event;
struct hot_pages;

/* Make counters for @cores cores, 8 at most; further cores share them.  @now_ms, here and below, is
 * a time of one monotonic clock.  NULL: out of memory. */
struct hot_pages *hot_pages_new(unsigned cores, int64_t now_ms) MUST_CHECK;
void hot_pages_free(struct hot_pages *hot); /* NULL is harmless */

/* Count the events of a request to write, or the pages of a question.  @core is the number of the
 * core that the thread runs on; any number will do.  Names are copied. */
void hot_pages_writes(
    struct hot_pages *hot, unsigned core, int64_t now_ms, const struct event *events, size_t n);
void hot_pages_reads(struct hot_pages *hot, unsigned core, int64_t now_ms, struct slice site,
    const struct slice *pages, size_t n);

/* List the @limit hottest pages, or fewer, in order (hot_pages_sort()).  *ret_absent: the most
 * reads a second, and the most writes, of a page that is not in the list.  The caller frees the
 * list with hot_pages_release().  False: out of memory. */
bool hot_pages_list(struct hot_pages *hot, int64_t now_ms, size_t limit, struct hot_page **ret,
    size_t *ret_n, double *ret_absent) MUST_CHECK;

#endif

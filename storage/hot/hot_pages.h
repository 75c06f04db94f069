/* hot_pages.h - the pages that are written and read most, over the last half minute.
 *
 * Layer: storage.  Thread-safe.
 *
 * Each core counts for itself (space_saving.h), in slots of 3 s: the one under way with 512
 * counters, the nine before it with the 64 greatest each.  The list adds them up.  A rate is off by
 * at most its error, either way: what counters may have taken over from others, and what a page may
 * have come where it has no counter.
 *
 * The whole site, which every event belongs to and which is the question of every dashboard, is no
 * page.
 */
#ifndef STORAGE_HOT_HOT_PAGES_H
#define STORAGE_HOT_HOT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/hot_page.h"

#define HOT_SLOTS   10
#define HOT_SLOT_MS 3000

struct hot_pages;
struct row;

/* @cores: how many count at the same time; more share.  @now_ms here and below: any monotonic
 * clock. NULL: out of memory. */
struct hot_pages *hot_pages_new(unsigned cores, int64_t now_ms);
void hot_pages_free(struct hot_pages *hot); /* NULL is harmless */

/* The rows of a request to write, and the pages of a question, which are counted on @core (any
 * number). */
void hot_pages_writes(
    struct hot_pages *hot, unsigned core, int64_t now_ms, const struct row *rows, size_t n);
void hot_pages_reads(struct hot_pages *hot, unsigned core, int64_t now_ms, struct slice site,
    const struct slice *pages, size_t n);

/* The up to @limit hottest, by both rates together, ties by name.  False: out of memory.  Give back
 * with hot_pages_release. */
bool hot_pages_list(
    struct hot_pages *hot, int64_t now_ms, size_t limit, struct hot_page **ret, size_t *ret_n);
void hot_pages_release(struct hot_page *pages, size_t n);

#endif

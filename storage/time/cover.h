/* cover.h - the fewest buckets that together make up a window.
 *
 * Layer: storage, pure: no I/O, no clock.  Thread-safe.
 *
 * A question about a window is answered from buckets.  The fewer buckets there are, the faster the
 * answer is: a day instead of 1,440 minutes.  A cover is a list of buckets that tile the window:
 * without a gap, without an overlap.  A bucket that reaches back behind 1970 counts as beginning
 * with it, for nothing is counted of the time before.  Not every bucket may be used.  A bucket is
 * legal if both of these conditions hold, or if the bucket lies so far ahead that no event can be
 * in it (storage/read/README.md, "What may be read"):
 *
 *     complete   the bucket is a minute, or closed for readers (closed.h)
 *     kept       its parent is not closed for readers, or now is before its end + keep time.
 *                The parent is the bucket of the next coarser level; a month is its own parent
 *
 * The levels nest.  So the largest legal buckets inside the window are disjoint, and no smaller
 * tiling exists.  A cover has at most 59 + 59 minutes, 23 + 23 hours, 30 + 30 days and the whole
 * months between them: 224 buckets and the months.
 */
#ifndef STORAGE_TIME_COVER_H
#define STORAGE_TIME_COVER_H

#include "storage/base/compiler.h"
#include "storage/time/bucket.h"
#include "storage/time/closed.h"

/* A cover in time order.  It has one owner: cover_init makes it, cover_release frees it. */
struct cover {
    struct bucket *buckets; /* owned */
    size_t n, capacity;
    uint32_t per_level[LEVELS]; /* how many of the buckets are of each level */
};

enum cover_result {
    COVER_OK,
    COVER_NOT_KEPT, /* some part of the window is kept at coarser levels only, or not at all */
    COVER_TOO_MANY, /* more than max_buckets; the rest of the window was not looked at */
    COVER_NOMEM,
};

/* Make @cover empty.  Allocates nothing. */
void cover_init(struct cover *cover);
void cover_release(struct cover *cover);

/* What decides whether a bucket is legal.  Nothing in it is owned. */
struct cover_basis {
    const struct zone *zone;
    const struct rollup_state *state;
    const struct retention *retention;
    int64_t now_s;
    int64_t empty_from_s; /* no event is this late: a bucket from here on is complete and empty */
};

/* May a reader use @bucket? */
bool cover_legal(const struct cover_basis *basis, struct bucket bucket);

/* Write the cover of @window into @ret, in place of what @ret held.  @window is not empty and has
 * whole minutes.  On any result but COVER_OK the content of @ret is unspecified, and @ret can still
 * be released or used again. */
enum cover_result cover_plan(const struct cover_basis *basis, struct window window,
    size_t max_buckets, struct cover *ret) MUST_CHECK;

/* Plan a cover in pieces: clear @cover, then append the covers of windows that follow each other.
 * @max_buckets bounds the buckets of all pieces together. */
void cover_clear(struct cover *cover);
enum cover_result cover_append(const struct cover_basis *basis, struct window window,
    size_t max_buckets, struct cover *cover) MUST_CHECK;

/* The smallest window around @window that can be tiled: its borders are moved outwards to the
 * nearest legal ones.  Where the beginning of @window is not kept at all, from_s is moved inwards
 * to the first instant that is kept.  False, with @ret untouched: nothing of @window is kept. */
bool cover_outer(
    const struct cover_basis *basis, struct window window, struct window *ret) MUST_CHECK;

/* The first instant from @at_s on where a tiled window can begin or end: @at_s, or the end of the
 * finest legal bucket around it.  False, with @ret_s untouched: nothing is kept at @at_s. */
bool cover_border(const struct cover_basis *basis, int64_t at_s, int64_t *ret_s) MUST_CHECK;

#endif

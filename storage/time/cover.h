/* cover.h - choose the fewest buckets that tile a window.
 *
 * Layer: storage, pure (no I/O, no clock).  Thread-safe.
 * A bucket may be used if it is legal: it is a minute or closed for readers, and it is still kept,
 * that is, its parent (the next coarser level; a month is its own parent) is not closed for
 * readers, or now is before its end + keep.  (ARCHITECTURE.md, "What may be read".)  What lies so
 * far ahead that no event can be there is legal at every level. The levels nest, so the maximal
 * legal buckets inside the window are disjoint, and no smaller tiling exists: at most 59+59
 * minutes, 23+23 hours, 30+30 days and the whole months, 224 and the months.
 */
#ifndef STORAGE_TIME_COVER_H
#define STORAGE_TIME_COVER_H

#include "storage/time/bucket.h"
#include "storage/time/closed.h"

/* A cover in time order.  Own it with cover_init, release with cover_release. */
struct cover {
    struct bucket *buckets; /* owned */
    size_t n, capacity;
    uint32_t per_level[LEVELS];
};

enum cover_result {
    COVER_OK,
    COVER_NOT_KEPT, /* some part of the window is kept at coarser levels only, or not at all */
    COVER_TOO_MANY, /* more than max_buckets; what lies behind them was not looked at */
    COVER_NOMEM,
};

void cover_init(struct cover *cover);
void cover_release(struct cover *cover);

/* What decides whether a bucket is legal. */
struct cover_basis {
    const struct zone *zone;
    const struct rollup_state *state;
    const struct retention *retention;
    int64_t now_s;
    int64_t
        empty_from_s; /* no event is this late: what begins here or later is complete, and empty */
};

/* May a reader use @bucket?  It is complete, or empty for sure, and still kept. */
bool cover_legal(const struct cover_basis *basis, struct bucket bucket);

/* Plan the cover of @window (not empty, whole minutes) into @ret (initialised; reused,
 * overwritten).  On any other result than COVER_OK the content of @ret is unspecified but
 * releasable. */
enum cover_result cover_plan(
    const struct cover_basis *basis, struct window window, size_t max_buckets, struct cover *ret);

/* The same in pieces: clear @cover, then append the covers of windows that follow each other. */
void cover_clear(struct cover *cover);
enum cover_result cover_append(
    const struct cover_basis *basis, struct window window, size_t max_buckets, struct cover *cover);

/* False: no memory; @to is as it was. */
bool cover_copy(const struct cover *from, struct cover *to);

/* The smallest window around @window that can be tiled (@window itself if it can be): its borders
 * moved outwards to the nearest legal ones.  Where the past is not kept at all, from_s moves
 * inwards to the first instant that is.  False if nothing of it is kept. */
bool cover_outer(const struct cover_basis *basis, struct window window, struct window *ret);

/* The first instant from @at_s on where a tiled window can begin or end: @at_s, or the end of the
 * finest legal bucket around it.  False: nothing is kept there. */
bool cover_border(const struct cover_basis *basis, int64_t at_s, int64_t *ret_s);

#endif

#include "storage/time/cover.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/time/units.h"

void cover_init(struct cover *cover)
{
    *cover = (struct cover){0};
}

void cover_release(struct cover *cover)
{
    free(cover->buckets);
    cover_init(cover);
}

/* Is the bucket still there?  It gets its expiry when its parent is rolled up, never before. */
static bool bucket_kept(const struct cover_basis *basis, struct bucket bucket)
{
    struct bucket parent = bucket;
    if (bucket.level != LEVEL_MONTH) {
        parent = bucket_at(basis->zone, (enum level)(bucket.level + 1), bucket.start_s);
    }
    if (!closed_for_readers(basis->state, parent)) {
        return true;
    }
    /* A sum of end and keep time could overflow: the keep time may be for ever. */
    return basis->now_s - bucket.end_s < retention_keep_s(basis->retention, bucket);
}

bool cover_legal(const struct cover_basis *basis, struct bucket bucket)
{
    if (bucket.start_s >= basis->empty_from_s) {
        return true;
    }
    return (bucket.level == LEVEL_MINUTE || closed_for_readers(basis->state, bucket)) &&
           bucket_kept(basis, bucket);
}

/* Where @bucket begins for a question.  Nothing can be asked or counted of the time before 1970, so
 * a bucket that reaches back behind it begins with it. */
static int64_t begin_s(struct bucket bucket)
{
    return bucket.start_s < 0 ? 0 : bucket.start_s;
}

/* The coarsest legal bucket that begins at @at_s and ends by @to_s. */
static bool coarsest_legal(
    const struct cover_basis *basis, int64_t at_s, int64_t to_s, struct bucket *ret)
{
    bool found = false;
    for (enum level level = LEVEL_MINUTE; level <= LEVEL_MONTH; level++) {
        struct bucket bucket = bucket_at(basis->zone, level, at_s);
        if (begin_s(bucket) != at_s || bucket.end_s > to_s) {
            break; /* the levels nest: no coarser bucket begins here and ends in time */
        }
        if (!cover_legal(basis, bucket)) {
            continue;
        }
        *ret = bucket;
        found = true;
    }
    return found;
}

static bool append_bucket(struct cover *cover, struct bucket bucket)
{
    if (!array_reserve(&cover->buckets, &cover->capacity, cover->n, sizeof(*cover->buckets))) {
        return false;
    }
    cover->buckets[cover->n++] = bucket;
    cover->per_level[bucket.level]++;
    return true;
}

/* Greedy from the left: at each instant the coarsest legal bucket is taken.  That is the best
 * tiling.  A coarser bucket that holds an instant and begins before it would lie in the window, and
 * would have been taken at its beginning. */
enum cover_result cover_append(
    const struct cover_basis *basis, struct window window, size_t max_buckets, struct cover *cover)
{
    int64_t at_s = window.from_s;
    while (at_s < window.to_s) {
        struct bucket bucket;
        if (!coarsest_legal(basis, at_s, window.to_s, &bucket)) {
            return COVER_NOT_KEPT;
        }
        if (cover->n == max_buckets) {
            return COVER_TOO_MANY;
        }
        if (!append_bucket(cover, bucket)) {
            return COVER_NOMEM;
        }
        at_s = bucket.end_s;
    }
    return COVER_OK;
}

void cover_clear(struct cover *cover)
{
    cover->n = 0;
    memset(cover->per_level, 0, sizeof(cover->per_level));
}

enum cover_result cover_plan(
    const struct cover_basis *basis, struct window window, size_t max_buckets, struct cover *ret)
{
    cover_clear(ret);
    return cover_append(basis, window, max_buckets, ret);
}

/* The finest legal bucket that holds @at_s.  Any tiled window around @at_s contains this bucket.
 *
 * Later instants are never worse off: if the finest legal bucket at some instant has level L, then
 * each later instant has a legal bucket of level L or finer.  The bucket of level L at the later
 * instant ends later and has no shorter keep time, so it is still kept.  If it is closed, it is
 * legal.  If it is open, take the finest open bucket there, an hour or coarser.  Its part at that
 * instant is a minute or closed, and is kept because its parent is open. */
static bool finest_legal(const struct cover_basis *basis, int64_t at_s, struct bucket *ret)
{
    for (enum level level = LEVEL_MINUTE; level <= LEVEL_MONTH; level++) {
        *ret = bucket_at(basis->zone, level, at_s);
        if (cover_legal(basis, *ret)) {
            return true;
        }
    }
    return false;
}

/* The first minute of @window that is kept at any level; window.to_s if none is. */
static int64_t first_kept_s(const struct cover_basis *basis, struct window window)
{
    int64_t low_s = window.from_s;
    int64_t high_s = window.to_s;
    struct bucket bucket;
    if (finest_legal(basis, low_s, &bucket)) {
        return low_s;
    }
    while (high_s - low_s > MINUTE_S) { /* low_s is not kept; high_s is kept, or the window's end */
        int64_t middle_s = low_s + (high_s - low_s) / MINUTE_S / 2 * MINUTE_S;
        if (finest_legal(basis, middle_s, &bucket)) {
            high_s = middle_s;
        } else {
            low_s = middle_s;
        }
    }
    return high_s;
}

/* Where a tiled window around [from_s, to_s) must end.  This is the end of the coarsest bucket that
 * reaches beyond @to_s and is the finest legal one of some instant in the window.  It is enough to
 * look at the first instant of a bucket, because later instants are never worse off. */
static int64_t outer_end_s(const struct cover_basis *basis, int64_t from_s, int64_t to_s)
{
    for (enum level level = LEVEL_MONTH; level > LEVEL_MINUTE; level--) {
        struct bucket last = bucket_at(basis->zone, level, to_s - 1);
        struct bucket needed;
        int64_t first_s = last.start_s < from_s ? from_s : last.start_s;
        if (last.end_s > to_s && finest_legal(basis, first_s, &needed) && needed.level == level) {
            return last.end_s;
        }
    }
    return to_s;
}

bool cover_outer(const struct cover_basis *basis, struct window window, struct window *ret)
{
    int64_t from_s = first_kept_s(basis, window);
    struct bucket first;
    if (from_s >= window.to_s || !finest_legal(basis, from_s, &first)) {
        return false;
    }
    ret->from_s = begin_s(first);
    ret->to_s = outer_end_s(basis, ret->from_s, window.to_s);
    return true;
}

bool cover_border(const struct cover_basis *basis, int64_t at_s, int64_t *ret_s)
{
    struct bucket bucket;
    if (!finest_legal(basis, at_s, &bucket)) {
        return false;
    }
    *ret_s = begin_s(bucket) == at_s ? at_s : bucket.end_s;
    return true;
}

/* figures.h - what single windows came to, remembered: many of them in one value.
 *
 * Layer: storage, private to count/.  One owner; what is remembered is shared (read/cache.h).
 *
 * A window is a point of a series, or a bucket.  A series has hundreds of points, and a value of
 * its own for each would take 80 bytes of the cache beside the figure.  Here a figure takes 16.
 * Windows of one length, some whole lengths apart, are numbered through: 64 of them are one value.
 * Days of another zone are other windows, in other values.  In time order there is a look at the
 * cache for 64 windows.
 *
 *     figures_begin(&figures, cache, &name, &proof);
 *     figures_find(&figures, window, &figure); ..
 *     figures_keep(&figures, window, figure); ..
 *     figures_end(&figures);
 */
#ifndef STORAGE_COUNT_FIGURES_H
#define STORAGE_COUNT_FIGURES_H

#include "storage/read/cache.h"
#include "storage/time/bucket.h"

#define FIGURES_OF_VALUE 64

struct figures {
    struct cache *cache; /* NULL: nothing is remembered */
    struct cache_id name;
    struct ver proof;
    /* The value at hand: how long its windows are (0: there is none), when the first one could
     * begin. */
    int64_t length_s, first_s;
    struct cache_id id;
    bool changed; /* since it was looked up */
    size_t n;
    struct known_figure {
        int64_t from_s;
        uint64_t figure;
    } all[FIGURES_OF_VALUE]; /* in time order */
};

/* Begin with what is remembered of @name under @proof.  A proof of n 0: nothing is, or will be. */
void figures_begin(struct figures *figures, struct cache *cache, const struct cache_id *name,
    const struct ver *proof);

/* False, with @ret untouched: the figure is not known. */
bool figures_find(struct figures *figures, struct window window, uint64_t *ret) MUST_CHECK;

/* Have the figure remembered. */
void figures_keep(struct figures *figures, struct window window, uint64_t figure);

/* Remember what was kept since figures_begin().  Where nothing was, it is not needed. */
void figures_end(struct figures *figures);

#endif

/* figures.h - what single windows came to, remembered: many of them in one value.
 *
 * Layer: storage, private to count/.  Belongs to one thread; all threads share the cache
 * (read/cache.h).
 *
 * A window is a point of a series, or a bucket.  A series has hundreds of points, and a value of
 * its own for each point would take 80 bytes of the cache beside the figure.  In this way a figure
 * takes 16 bytes.  Windows of one length, some whole lengths apart, are numbered through: 64 of
 * them are one value.  Days of another zone are other windows, in other values.  A caller that goes
 * in time order looks into the cache once for 64 windows.
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
    /* Of the value at hand: how long its windows are (0: there is no value), and when the first of
     * its 64 windows begins, which the value need not have. */
    int64_t length_s, first_s;
    struct cache_id id; /* of the value at hand */
    bool changed;       /* the value at hand has figures that the cache does not have */
    size_t n;           /* figures in all */
    struct known_figure {
        int64_t from_s;
        uint64_t figure;
    } all[FIGURES_OF_VALUE]; /* in time order */
};

/* Begin with what is remembered of @name under @proof.  If proof->n is 0, nothing is remembered,
 * and nothing will be. */
void figures_begin(struct figures *figures, struct cache *cache, const struct cache_id *name,
    const struct ver *proof);

/* Find the figure of @window.  False, with @ret untouched: the figure is not known. */
bool figures_find(struct figures *figures, struct window window, uint64_t *ret) MUST_CHECK;

/* Have the figure of @window remembered, by figures_end() at the latest. */
void figures_keep(struct figures *figures, struct window window, uint64_t figure);

/* Put the last of what was kept into the cache.  Without figures_keep() no figures_end() is needed.
 */
void figures_end(struct figures *figures);

#endif

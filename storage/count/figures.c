#include "storage/count/figures.h"

#include <assert.h>
#include <string.h>

#include "storage/time/units.h"

void figures_begin(struct figures *figures, struct cache *cache, const struct cache_id *name,
    const struct ver *proof)
{
    figures->cache = proof->n > 0 ? cache : NULL;
    figures->name = *name;
    figures->proof = *proof;
    figures->length_s = 0;
    figures->changed = false;
    figures->n = 0;
}

void figures_end(struct figures *figures)
{
    if (figures->changed) {
        cache_put(figures->cache, &figures->id, &figures->proof, figures->all,
            figures->n * sizeof(figures->all[0]));
        figures->changed = false;
    }
}

static void copy_figures(void *data, const void *value, size_t n)
{
    struct figures *figures = data;
    figures->n = n / sizeof(figures->all[0]);
    memcpy(figures->all, value, n);
}

/* When the first of the 64 windows begins whose value has @window. */
static int64_t first_of(struct window window)
{
    int64_t length_s = window.to_s - window.from_s;
    int64_t number = floor_div(window.from_s, length_s);
    return window.from_s - (number - floor_to(number, FIGURES_OF_VALUE)) * length_s;
}

/* Make the value that has @window the one at hand.  The value before goes into the cache. */
static void turn_to(struct figures *figures, struct window window)
{
    struct {
        struct cache_id name;
        int64_t length_s, first_s;
    } of = {figures->name, window.to_s - window.from_s, first_of(window)};
    if (figures->length_s == of.length_s && figures->first_s == of.first_s) {
        return;
    }
    figures_end(figures);
    figures->length_s = of.length_s;
    figures->first_s = of.first_s;
    figures->id = cache_id(figures->cache, &of, sizeof(of));
    figures->n = 0;
    (void)cache_get(figures->cache, &figures->id, &figures->proof, copy_figures, figures);
}

/* The index of the window that begins at @from_s, or the index where it is to be inserted. */
static size_t place_of(const struct figures *figures, int64_t from_s)
{
    size_t low = 0;
    size_t high = figures->n; /* windows before low begin earlier, those from high on do not */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (figures->all[middle].from_s < from_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct figures *figures, size_t at, int64_t from_s)
{
    return at < figures->n && figures->all[at].from_s == from_s;
}

bool figures_find(struct figures *figures, struct window window, uint64_t *ret)
{
    if (figures->cache == NULL) {
        return false;
    }
    turn_to(figures, window);
    size_t at = place_of(figures, window.from_s);
    if (!is_at(figures, at, window.from_s)) {
        return false;
    }
    *ret = figures->all[at].figure;
    return true;
}

void figures_keep(struct figures *figures, struct window window, uint64_t figure)
{
    if (figures->cache == NULL) {
        return;
    }
    turn_to(figures, window);
    size_t at = place_of(figures, window.from_s);
    if (!is_at(figures, at, window.from_s)) {
        assert(figures->n < FIGURES_OF_VALUE); /* a value has only so many different windows */
        struct known_figure *to = &figures->all[at];
        memmove(to + 1, to, (figures->n - at) * sizeof(*to));
        figures->n++;
    }
    figures->all[at] = (struct known_figure){window.from_s, figure};
    figures->changed = true;
}

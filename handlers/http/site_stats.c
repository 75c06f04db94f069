#include "handlers/http/site_stats.h"

#include <stdlib.h>
#include <string.h>

static struct site_stats_name *site_stats_name_new(struct slice site)
{
    struct site_stats_name *name = calloc(1, sizeof(*name));
    if (name != NULL) {
        name->n = site.n;
        memcpy(name->text, site.p, site.n);
    }
    return name;
}

/* The number of @site.  A new site takes the first free slot.  Where there is none, or memory is
 * out, the number is that of the other sites. */
static _Atomic int64_t *site_stats_find(struct site_stats *stats, struct slice site)
{
    if (site.n > EVENT_SITE_MAX || slice_equal(site, SLICE(SITE_STATS_OTHER))) {
        return &stats->other;
    }
    for (size_t i = 0; i < SITE_STATS_MAX; i++) {
        struct site_stats_slot *slot = &stats->slots[i];
        struct site_stats_name *name = atomic_load(&slot->name);
        if (name == NULL) {
            struct site_stats_name *own = site_stats_name_new(site);
            if (own == NULL) {
                return &stats->other;
            }
            if (atomic_compare_exchange_strong(&slot->name, &name, own)) {
                return &slot->events;
            }
            free(own); /* another thread took the slot first, perhaps for the same site */
        }
        if (slice_equal((struct slice){name->text, name->n}, site)) {
            return &slot->events;
        }
    }
    return &stats->other;
}

/* How many of @events, from the first on, have the same site. */
static size_t same_site(const struct event *events, size_t n)
{
    size_t same = 1;
    while (same < n && slice_equal(events[same].site, events[0].site)) {
        same++;
    }
    return same;
}

void site_stats_count(struct site_stats *stats, const struct event *events, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t same = same_site(events + i, n - i);
        atomic_fetch_add(site_stats_find(stats, events[i].site), (int64_t)same);
        i += same;
    }
}

bool site_sums_take(
    struct site_stats *stats, const struct event *events, size_t n, struct site_sums *ret)
{
    size_t runs = 0;
    for (size_t i = 0; i < n; i += same_site(events + i, n - i)) {
        runs++;
    }
    *ret = (struct site_sums){.sums = &ret->one};
    if (runs > 1) {
        ret->sums = malloc(runs * sizeof(*ret->sums));
        if (ret->sums == NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < n;) {
        size_t same = same_site(events + i, n - i);
        ret->sums[ret->n++] =
            (struct site_sum){site_stats_find(stats, events[i].site), (int64_t)same};
        i += same;
    }
    return true;
}

void site_sums_count(const struct site_sums *sums)
{
    for (size_t i = 0; i < sums->n; i++) {
        atomic_fetch_add(sums->sums[i].of, sums->sums[i].n);
    }
}

void site_sums_release(struct site_sums *sums)
{
    if (sums->sums != &sums->one) {
        free(sums->sums);
    }
    *sums = (struct site_sums){0};
}

void site_stats_release(struct site_stats *stats)
{
    for (size_t i = 0; i < SITE_STATS_MAX; i++) {
        free(atomic_exchange(&stats->slots[i].name, NULL));
    }
}

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

/* The counter of @site; a free one becomes its own. */
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
            free(own); /* another thread was first, perhaps with the same site */
        }
        if (slice_equal((struct slice){name->text, name->n}, site)) {
            return &slot->events;
        }
    }
    return &stats->other;
}

void site_stats_count(struct site_stats *stats, const struct event *events, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t from = i;
        while (i < n && slice_equal(events[i].site, events[from].site)) {
            i++;
        }
        atomic_fetch_add(site_stats_find(stats, events[from].site), (int64_t)(i - from));
    }
}

void site_stats_release(struct site_stats *stats)
{
    for (size_t i = 0; i < SITE_STATS_MAX; i++) {
        free(atomic_exchange(&stats->slots[i].name, NULL));
    }
}

/* site_stats.h - tallyd_site_events_total: how many events of each site were counted.
 *
 * Layer: handlers.  Thread-safe: names are set once, numbers are atomic.
 *
 * The first SITE_STATS_MAX sites that send events to this process have a number of their own; the
 * events of all others stand under `other`.  So no sender can make the metric grow without bound.
 * A site that is named "other" has no number of its own either.
 */
#ifndef HANDLERS_HTTP_SITE_STATS_H
#define HANDLERS_HTTP_SITE_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/job/event.h"

#define SITE_STATS_MAX   100
#define SITE_STATS_OTHER "other"

/* The metric's name and help. */
#define SITE_STATS_METRIC "tallyd_site_events_total"
#define SITE_STATS_HELP   "Events counted, by site: of the first 100 sites; of others together."

struct site_stats_name {
    size_t n;
    char text[EVENT_SITE_MAX + 1]; /* NUL-terminated; a site's name needs no escape in a label */
};

/* Zeroed it is empty. */
struct site_stats {
    struct site_stats_slot {
        struct site_stats_name *_Atomic name; /* owned; NULL: this slot and all behind are free */
        _Atomic int64_t events;
    } slots[SITE_STATS_MAX];
    _Atomic int64_t other;
};

/* Add @n events, which were counted, to the numbers of their sites. */
void site_stats_count(struct site_stats *stats, const struct event *events, size_t n);

/* What a request will add to the numbers once its events are counted: the events may be freed by
 * then.  The struct may point into itself, so it must not be copied. */
struct site_sums {
    struct site_sum {
        _Atomic int64_t *of; /* a number of the struct site_stats, which must live on */
        int64_t n;
    } * sums; /* n of them: &one, or owned */
    size_t n;
    struct site_sum one; /* the only sum, where all events are of one site */
};

/* Sum up @n events by their sites.  False: out of memory.  Release @ret in either case. */
bool site_sums_take(struct site_stats *stats, const struct event *events, size_t n,
    struct site_sums *ret) MUST_CHECK;

/* Add the sums to the numbers: the events were counted. */
void site_sums_count(const struct site_sums *sums);

/* Free the array.  @sums may be zeroed. */
void site_sums_release(struct site_sums *sums);

/* Free the names.  No other thread may use @stats any more. */
void site_stats_release(struct site_stats *stats);

#endif

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
        struct site_stats_name *_Atomic name; /* owned; NULL: free, and so are those behind it */
        _Atomic int64_t events;
    } slots[SITE_STATS_MAX];
    _Atomic int64_t other;
};

/* @n events were counted. */
void site_stats_count(struct site_stats *stats, const struct event *events, size_t n);

/* What a request will add, once it is counted: its events may be gone by then. */
struct site_sums {
    struct site_sum {
        _Atomic int64_t *of;
        int64_t n;
    } * sums; /* n of them: &one, or owned */
    size_t n;
    struct site_sum one; /* of a request with one site */
};

/* Take the sums of @n events.  False: out of memory. */
bool site_sums_take(struct site_stats *stats, const struct event *events, size_t n,
    struct site_sums *ret) MUST_CHECK;

/* The events were counted. */
void site_sums_count(const struct site_sums *sums);

/* Also of zeroed ones. */
void site_sums_release(struct site_sums *sums);

/* After the last count. */
void site_stats_release(struct site_stats *stats);

#endif

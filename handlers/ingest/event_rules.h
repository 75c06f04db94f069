/* event_rules.h - which events are acceptable, and what is said of an event that is not.
 *
 * Layer: handlers: plain values, and functions without I/O.  Thread-safe.
 *
 * The rules that are the same for every request are functions of text/check.h.  The rules here
 * depend on the time of the request, on its parameters and on the options.  An event that breaks a
 * rule is rejected.  A valid event may still be dropped, which means that it is not counted.
 */
#ifndef HANDLERS_INGEST_EVENT_RULES_H
#define HANDLERS_INGEST_EVENT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handlers/http/app.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

struct http_exchange;

/* Times are UTC epoch seconds. */
struct event_rules {
    int64_t now_s;    /* time of arrival: an event without ts gets it, unchecked */
    int64_t latest_s; /* a ts after this is rejected */
    int64_t oldest_s; /* a ts before this is rejected; INT64_MIN: nothing is too old */
    /* An event with actions alone is rejected if its day, by the zone of its site, ends at this
     * time or before.  zone_of() is called with app->storage. */
    int64_t days_from_s;
    const struct zone *(*zone_of)(struct storage *storage, struct slice site);
    size_t max_events;             /* events of one request, rejected and dropped ones included */
    bool needs_time;               /* an event without ts is rejected, and all others with it */
    struct robots_cache *robots;   /* events of robots are dropped; NULL: they count */
    const struct network *ignored; /* n_ignored networks; events from there are dropped */
    size_t n_ignored;
    /* May @sender write to @site?  Called for events that are dropped.  NULL: not called. */
    bool (*may_write)(const struct http_exchange *sender, struct slice site);
    const struct http_exchange *sender;
    /* Says which sites are taken, and what page views are counted by.  NULL: all sites are taken,
     * and page views are counted by page alone. */
    const struct app *app;
};

#define EVENT_POINTER_SIZE 80
#define EVENT_DETAIL_SIZE  96

/* The first thing that was found wrong with one event. */
struct event_reject {
    size_t index; /* the event's, from 0; in NDJSON that of its line, blank lines included */
    char pointer[EVENT_POINTER_SIZE]; /* JSON pointer into the event: "/page"; "" is the event as a
                                         whole.  May hold the name of a member as it was sent */
    char detail[EVENT_DETAIL_SIZE];   /* never holds input */
};

/* Why a valid event is not counted; the names are those of the answer.
 *    value         name */
#define DROP_REASONS(X)                                                                            \
    X(DROP_ROBOT, "robot")                                                                         \
    X(DROP_IGNORED, "ignored")

enum drop_reason {
    DROP_NOT, /* it is counted */
#define X(value, name) value,
    DROP_REASONS(X)
#undef X
};

/* One event that was dropped. */
struct event_drop {
    size_t index; /* as in struct event_reject */
    enum drop_reason reason;
};

/* Why is @event, which is valid, not counted?  DROP_NOT: it is counted. */
enum drop_reason event_drop_reason(
    const struct event_rules *rules, const struct event *event) MUST_CHECK;

/* The name of a reason; "" for DROP_NOT. */
const char *drop_reason_name(enum drop_reason reason);

#endif

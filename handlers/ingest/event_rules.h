/* event_rules.h - which events are acceptable, and what is said of one that is not.
 *
 * Layer: handlers: plain values.
 *
 * The rules that are the same for every request are functions of text/check.h; these depend on the
 * time of the request and on the options.
 */
#ifndef HANDLERS_INGEST_EVENT_RULES_H
#define HANDLERS_INGEST_EVENT_RULES_H

#include <stddef.h>
#include <stdint.h>

/* Times are UTC epoch seconds. */
struct event_rules {
    int64_t now_s;     /* time of arrival: an event without ts gets it, unchecked */
    int64_t latest_s;  /* a ts after this is rejected */
    int64_t oldest_s;  /* a ts before this is rejected; INT64_MIN: nothing is too old */
    size_t max_events; /* in one request, accepted and rejected together */
};

#define EVENT_POINTER_SIZE 80
#define EVENT_DETAIL_SIZE  96

/* The first thing that was found wrong with one event. */
struct event_reject {
    size_t index; /* of the event; for NDJSON the number of its line, from 0, blank ones counted */
    char pointer[EVENT_POINTER_SIZE]; /* JSON pointer into the event: "/page"; "" is the event as a
                                         whole.  May hold the name of a member as it was sent */
    char detail[EVENT_DETAIL_SIZE];   /* never holds input */
};

#endif

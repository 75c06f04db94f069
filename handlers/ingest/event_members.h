/* event_members.h - one JSON value to one event.
 *
 * Layer: handlers, the part of the decoder that knows the members' names; private to event_json.c.
 */
#ifndef HANDLERS_INGEST_EVENT_MEMBERS_H
#define HANDLERS_INGEST_EVENT_MEMBERS_H

#include "handlers/ingest/event_json.h"
#include "handlers/text/json_scan.h"

struct event_reader {
    struct json_scan *scan;
    const struct event_rules *rules;
    /* The event that is read, complete but for event->actions: those are below, as many as
     * event->n_actions, because only an accepted event's are kept. */
    struct event *event;
    struct slice actions[EVENT_ACTIONS_MAX];
    unsigned seen; /* known members, one bit each */
    /* Why the event is rejected: what was found first. */
    const char *detail; /* static; NULL: it is not */
    char pointer[EVENT_POINTER_SIZE];
};

/* Take a value off @reader->scan.  False: it is not JSON, see the scan. */
bool event_read(struct event_reader *reader);

#endif

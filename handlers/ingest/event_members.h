/* event_members.h - one JSON value, taken apart member by member, becomes one event.
 *
 * Layer: handlers, pure; private to event_json.c.  A reader belongs to one thread.
 *
 * This is the part of the decoder that knows the members' names and what each may hold.
 */
#ifndef HANDLERS_INGEST_EVENT_MEMBERS_H
#define HANDLERS_INGEST_EVENT_MEMBERS_H

#include "handlers/dimension/derive.h"
#include "handlers/ingest/event_rules.h"
#include "handlers/text/json_scan.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

#define EVENT_PROPS_READ 30 /* properties of an event that are looked at */

struct event_reader {
    struct json_scan *scan;
    const struct event_rules *rules;
    struct event *event; /* the event is written here, complete but for event->actions */
    struct slice actions[EVENT_ACTIONS_MAX];  /* event->n_actions of them; the caller copies them if
                                                the event is accepted */
    struct slice name;                        /* the name of a named event, with its mark */
    struct view_traits traits;                /* what else the event says of a page view */
    struct view_prop props[EVENT_PROPS_READ]; /* traits.n_props of them */
    unsigned seen;                            /* a bit for each member that was there */
    bool untimed;                             /* the event has no ts, and rules->needs_time */
    const char *detail; /* why the event is rejected: the first fault, static; NULL: it is not */
    char pointer[EVENT_POINTER_SIZE]; /* a JSON pointer to the member at fault */
};

/* Read the next value of the scan as an event.  True: the event is read, or rejected (see detail).
 * False: the text is no JSON, and the scan says where and why. */
bool event_read(struct event_reader *reader) MUST_CHECK;

#endif

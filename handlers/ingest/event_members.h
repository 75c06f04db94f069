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
    struct event *event; /* where to read it to: complete, but for event->actions */
    struct slice actions[EVENT_ACTIONS_MAX];  /* event->n_actions of them: kept by the caller, and
                                                only where the event is accepted */
    struct slice name;                        /* of a named event, with its mark */
    struct view_traits traits;                /* what else it says of a page view */
    struct view_prop props[EVENT_PROPS_READ]; /* traits.n_props of them */
    unsigned seen;                            /* the known members that were read, one bit each */
    bool untimed;                             /* it has no ts, and rules->needs_time */
    const char *detail; /* why the event is rejected: the first fault, static; NULL: it is not */
    char pointer[EVENT_POINTER_SIZE]; /* to the member at fault */
};

/* Take one value off the scan.  True: the event is read, or rejected (see detail).  False: the text
 * is no JSON, and the scan says where and why. */
bool event_read(struct event_reader *reader) MUST_CHECK;

#endif

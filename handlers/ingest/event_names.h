/* event_names.h - the names of an event's members.
 *
 * Layer: handlers, pure; private to event_members.c.  Thread-safe: no state.
 */
#ifndef HANDLERS_INGEST_EVENT_NAMES_H
#define HANDLERS_INGEST_EVENT_NAMES_H

#include "handlers/dimension/campaign.h"

enum member {
    MEMBER_PAGE,
    MEMBER_USER,
    MEMBER_SITE,
    MEMBER_IP,
    MEMBER_UA,
    MEMBER_TS,
    MEMBER_REFERRER,
    MEMBER_ACTIONS,
    MEMBER_EVENT,
    MEMBER_VISITOR,
    MEMBER_COUNTRY,
    MEMBER_LANGUAGE,
    MEMBER_PROPS,
    MEMBER_UTM, /* the first of UTM_N */
    MEMBER_UNKNOWN = MEMBER_UTM + UTM_N,
};

/* The member with the name @name; MEMBER_UNKNOWN: there is none. */
enum member event_member_find(struct slice name);

/* A JSON pointer to @member, which is not MEMBER_UNKNOWN: static. */
const char *event_member_pointer(enum member member);

#endif

/* event_member.h - the names that an event's members may have.
 *
 * Layer: handlers, pure; private to event_members.c.  Thread-safe.
 */
#ifndef HANDLERS_INGEST_EVENT_MEMBER_H
#define HANDLERS_INGEST_EVENT_MEMBER_H

#include "handlers/dimension/campaign.h"
#include "storage/base/slice.h"

enum event_member {
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

/* The member of that name; MEMBER_UNKNOWN: none has it. */
enum event_member event_member_find(struct slice name);

/* Its JSON pointer in the event, "/page" for example; static.  Not for MEMBER_UNKNOWN. */
const char *event_member_pointer(enum event_member member);

#endif

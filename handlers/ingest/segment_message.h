/* segment_message.h - one message of Segment's HTTP API, taken apart member by member.
 *
 * Layer: handlers, pure (no I/O, no clock).  A scan belongs to one thread.
 *
 * These members are looked at:
 *
 *     type                       in a batch: page, track, identify, alias, group, screen
 *     properties.url             absolute: its path is the page
 *     properties.path            the page, where there is no such url
 *     event                      of track, and required there: the name of a named event
 *     userId                     the user: a string or an integer
 *     anonymousId                the visitor: an anonymous id
 *     context.ip, .userAgent     whose address and agent
 *     context.locale             the language
 *     context.campaign           source, medium, name, term, content
 *     context.page.referrer      where the visitor came from, ..
 *     properties.referrer        .. and where there is none; what is no string is passed over
 *     timestamp                  the time of the event; else the time of arrival
 *     messageId                  an id by which a repeat is known
 *     writeKey                   a token, in a message that is no part of a batch
 *
 * A member that is null or "" counts as missing.  If a member is given twice the last value holds.
 */
#ifndef HANDLERS_INGEST_SEGMENT_MESSAGE_H
#define HANDLERS_INGEST_SEGMENT_MESSAGE_H

#include "handlers/dimension/campaign.h"
#include "handlers/text/json_scan.h"

/* What a message says for derive_view(), which needs to know the site first. */
struct segment_traits {
    struct slice referrer, url, language, utm[UTM_N];
};

/* One message, as far as it is looked at.  The slices point into the scan's text. */
struct segment_message {
    struct segment_traits traits; /* those of the context; traits.url is empty */
    struct slice type, user, visitor, event, id, timestamp, url, path, address, agent, write_key;
    struct slice referrer;        /* properties.referrer */
    const char *fault_at, *fault; /* the first fault, static; NULL: none so far */
};

/* Read the next value of the scan as a message.  True: the message is read, or has a fault;
 * scan->fault may have another fault, an unusable text.  False: the text is no JSON, and the scan
 * says where and why. */
bool segment_message_read(struct json_scan *scan, struct segment_message *ret) MUST_CHECK;

/* Note a fault of the member @at, unless there is one already.  Both texts are static. */
void segment_message_refuse(struct segment_message *message, const char *at, const char *fault);

#endif

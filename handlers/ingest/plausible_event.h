/* plausible_event.h - the event that Plausible's trackers send, decoded.
 *
 * Layer: handlers, pure: no I/O, no clock.  Thread-safe.
 *
 * The event is a JSON object, whatever its Content-Type says.  Its members have long or short
 * names:
 *
 *     name, n        "pageview"; "engagement", which is not counted; any other name is that of a
 *                    named event, which Plausible calls a custom event, a goal, an outbound link..
 *     url, u         absolute; the page is its path, as written
 *     hashMode, h    1 or true: the fragment of the URL belongs to the page
 *     domain, d      the site, or several with commas between
 *
 *     referrer, r    where the visitor came from; a text or null
 *     props, p, m    properties: an object, or its JSON as a text.  Members count that are texts,
 *                    numbers or booleans, with a name as in text/check.h; others are ignored
 *
 * Other members (revenue, width, engagement's figures) are not looked at.  If a member is given
 * twice the last value holds; if it is given under both names that of the long name holds.
 *
 * Source: Plausible's Events API (plausible.io/docs/events-api, read 2026-07-24), and what its
 * trackers send (npm plausible-tracker 0.3.9, @plausible-analytics/tracker 0.4.6).
 */
#ifndef HANDLERS_INGEST_PLAUSIBLE_EVENT_H
#define HANDLERS_INGEST_PLAUSIBLE_EVENT_H

#include <stddef.h>

#include "handlers/dimension/derive.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define PLAUSIBLE_DOMAINS_MAX 16
#define PLAUSIBLE_BODY_MAX    65536
#define PLAUSIBLE_PROPS_MAX   30

enum plausible_kind { PLAUSIBLE_VIEW, PLAUSIBLE_NAMED, PLAUSIBLE_ENGAGEMENT };

/* A zeroed struct is empty. */
struct plausible_event {
    enum plausible_kind kind;
    struct slice page;
    struct slice name; /* a named event's, with its mark (storage/job/counted_name.h) */
    struct slice domains[PLAUSIBLE_DOMAINS_MAX]; /* valid names of sites, each once */
    size_t n_domains;
    struct slice url;      /* whole, as it was sent */
    struct slice referrer; /* empty: none */
    struct view_prop props[PLAUSIBLE_PROPS_MAX];
    size_t n_props;
    char *bytes; /* owned: what the slices point into */
};

/* What is wrong, as static texts.  `member` is NULL where the body as a whole is at fault. */
struct plausible_fault {
    const char *member, *detail;
};

enum plausible_result { PLAUSIBLE_OK, PLAUSIBLE_FAULT, PLAUSIBLE_NOMEM };

/* Decode @body, of at most PLAUSIBLE_BODY_MAX bytes, into @ret.  On any other result than
 * PLAUSIBLE_OK @ret is empty. */
enum plausible_result plausible_decode(
    struct slice body, struct plausible_event *ret, struct plausible_fault *ret_fault) MUST_CHECK;

void plausible_release(struct plausible_event *event);

#endif

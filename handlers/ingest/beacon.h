/* beacon.h - page views that a visitor's own browser sends: one address, one user agent, now.
 *
 * Layer: handlers.  A struct belongs to its request.
 *
 * This is what /pixel.gif and /api/event have in common.  The ingestion guard limits them as it
 * limits POST /events.  Some page views are dropped; each reason has a counter of its own:
 *
 *     Sec-Purpose: prefetch                         nobody looks at the page, or not yet
 *     with --respect-dnt, DNT: 1 or Sec-GPC: 1      the visitor asks not to be tracked
 *     the address is one of --ignore-ip             one's own visits
 *     a known robot                                 see text/robots.h
 *
 * Source of Sec-Purpose: the Fetch standard, section "Sec-Purpose" (a list of tokens with
 * parameters: `prefetch`, `prefetch;prerender`).
 */
#ifndef HANDLERS_INGEST_BEACON_H
#define HANDLERS_INGEST_BEACON_H

#include "handlers/dimension/derive.h"
#include "handlers/http/http.h"
#include "handlers/ingest/ingest_guard.h"
#include "storage/base/compiler.h"

#define BEACON_EVENTS_MAX 16 /* of one request: a view that counts for several sites */

/* Zeroed it is empty. */
struct beacon {
    struct event events[BEACON_EVENTS_MAX]; /* the caller fills site, page and user of n */
    size_t n;
    struct view_traits traits; /* the caller's: of all events */
    struct arena arena;
    struct ingest_guard guard;
};

enum beacon_verdict {
    BEACON_WAIT,    /* the job is filled */
    BEACON_DROPPED, /* not to be counted, see above; the response has the guard's fields, no more */
    BEACON_REFUSED, /* the response says why: limited, not for this site, Redis never seen */
};

/* May the client send page views of all sites of @beacon?  False: the response says why not. */
bool beacon_allowed(struct http_exchange *exchange, const struct beacon *beacon) MUST_CHECK;

/* Complete the events of @beacon, which are filled and checked, and fill the job. */
enum beacon_verdict beacon_start(struct http_exchange *exchange, struct beacon *beacon) MUST_CHECK;

/* Tell what beacon_start() would say, as far as that is known here (BEACON_WAIT: it would be
 * tried).  Nothing is counted, and nothing is taken from the limit. */
enum beacon_verdict beacon_foretell(
    struct http_exchange *exchange, const struct beacon *beacon) MUST_CHECK;

/* The job is done.  True: all is counted, and the response has the guard's fields, no more.  False:
 * the response says why not. */
bool beacon_finish(struct http_exchange *exchange, struct beacon *beacon) MUST_CHECK;

void beacon_release(struct beacon *beacon);

#endif

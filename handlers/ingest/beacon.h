/* beacon.h - page views that a visitor's own browser sends: one address, one user agent, now.
 *
 * Layer: handlers.  A struct belongs to its request.
 *
 * This is what /pixel.gif and /api/event have in common.  The ingestion guard limits their page
 * views as it limits POST /events.  Some page views are dropped; each reason has its own counter:
 *
 *     Sec-Purpose: prefetch                         the page is not looked at, or not yet
 *     with --respect-dnt, DNT: 1 or Sec-GPC: 1      the visitor asks not to be tracked
 *     the address is one of --ignore-ip             visits of the operator's own people
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

#define BEACON_EVENTS_MAX 16 /* a request has several events if its view counts for several sites */

/* The events of one request.  A zeroed struct is empty. */
struct beacon {
    struct event events[BEACON_EVENTS_MAX]; /* n of them; the caller fills site, page and user */
    size_t n;
    struct view_traits traits; /* those of all events; the caller fills in what it knows */
    struct arena arena;        /* texts of dimensions */
    struct ingest_guard guard;
};

enum beacon_verdict {
    BEACON_WAIT,    /* the job is filled */
    BEACON_DROPPED, /* nothing is counted, see above; the response has only the guard's fields */
    BEACON_REFUSED, /* the response says why: limited, not for this site, Redis never seen.. */
};

/* May the client send page views for all sites of @beacon?  False: the response says why not. */
bool beacon_allowed(struct http_exchange *exchange, const struct beacon *beacon) MUST_CHECK;

/* Complete the events of @beacon, which are filled and checked, and fill the job. */
enum beacon_verdict beacon_start(struct http_exchange *exchange, struct beacon *beacon) MUST_CHECK;

/* What would beacon_start() return?  BEACON_WAIT: the job would be submitted, and may fail.
 * Nothing is counted, and nothing is taken from the limit. */
enum beacon_verdict beacon_foretell(
    struct http_exchange *exchange, const struct beacon *beacon) MUST_CHECK;

/* The job is done.  True: all events are counted, and the response has only the guard's fields.
 * False: the response says why not. */
bool beacon_finish(struct http_exchange *exchange, struct beacon *beacon) MUST_CHECK;

void beacon_release(struct beacon *beacon);

#endif

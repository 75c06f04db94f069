/* beacon.h - page views that a visitor's own browser sends: one address, one user agent, now.
 *
 * Layer: handlers.  A struct belongs to its request.
 *
 * What /pixel.gif and /api/event have in common.  Not counted, each with a counter of its own:
 * known bots (bots.h), and, with --respect-dnt, who sends DNT: 1 or Sec-GPC: 1.  The ingestion
 * guard holds here as for POST /events.
 */
#ifndef HANDLERS_INGEST_BEACON_H
#define HANDLERS_INGEST_BEACON_H

#include "handlers/http/http.h"
#include "handlers/ingest/ingest_guard.h"

#define BEACON_EVENTS_MAX 16 /* of one request: a view that counts for several sites */

/* Zeroed it is empty. */
struct beacon {
    struct event events[BEACON_EVENTS_MAX]; /* fill site, page and user of n */
    size_t n;
    struct ingest_guard guard;
};

enum beacon_verdict {
    BEACON_WAIT,    /* the job is filled */
    BEACON_IGNORED, /* a bot, or who does not want to be counted; the response
                       has the guard's headers alone */
    BEACON_REFUSED, /* the response says why: limited, not for this site, Redis never seen */
};

/* @beacon's events are filled and checked: complete them, and fill the job. */
enum beacon_verdict beacon_start(struct http_exchange *exchange, struct beacon *beacon);

/* What beacon_start() would say, as far as that is known here, and nothing else: nothing is
 * counted, nor taken from the limit.  BEACON_WAIT: it would be tried. */
enum beacon_verdict beacon_foretell(struct http_exchange *exchange, const struct beacon *beacon);

/* The job is done.  True: all is counted, and the response has the guard's headers, no more. False:
 * the response says why not. */
bool beacon_finish(struct http_exchange *exchange, struct beacon *beacon);

void beacon_release(struct beacon *beacon);

#endif

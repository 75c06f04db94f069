/* ingest_guard.h - the limit on page views, the same for all endpoints that take them.
 *
 * Layer: handlers.  A struct belongs to its request.
 *
 * The ingestion guard (--ingest-limit) limits how many events an address, a token or a site may
 * send.  Header fields of the answers tell what is left.  Where there is no guard these functions
 * do nothing, and let all pass.  They are called in this order:
 *
 *     ingest_guard_open()     before the body is decoded: is decoding worth it?
 *     ingest_guard_admit()    when the valid events are known, and the job is filled
 *     ingest_guard_headers()  on the answer, if the events were admitted
 *     ingest_guard_refused()  if the job ended with STORAGE_LIMITED
 *     ingest_guard_release()
 *     ingest_guard_tell()     on an answer for which nothing was taken, where the events are known
 *     ingest_guard_dress()    on every answer, after the handler: adds the fields if none are there
 */
#ifndef HANDLERS_INGEST_INGEST_GUARD_H
#define HANDLERS_INGEST_INGEST_GUARD_H

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* What a request takes from the limit.  A zeroed struct is empty.  The struct may point into
 * itself, so it must not be copied. */
struct ingest_guard {
    struct guard_charge one;      /* the charge, where the request has only one */
    struct guard_charge *charges; /* &one, or owned; n_charges of them */
    size_t n_charges;
    struct event_address address; /* the client's, where addresses are limited */
    struct limit_state state;     /* what is left, if told */
    bool told;                    /* the guard has admitted the events without asking Redis */
};

/* May a body of @body_n bytes be decoded?  False: none of its events could be admitted now,
 * whatever the body holds, and the response is a 429.  A body that may hold more events than the
 * limit ever lets pass is decoded all the same, because its client must be told so. */
bool ingest_guard_open(struct http_exchange *exchange, size_t body_n) MUST_CHECK;

/* May @n events be written?  False: the response is a 429, or a 503.  True: go on.  If Redis has to
 * be asked first, exchange->job.u.write has the charges now, and storage asks. */
bool ingest_guard_admit(struct http_exchange *exchange, struct ingest_guard *guard,
    const struct event *events, size_t n) MUST_CHECK;

/* Add the fields that tell what is left, now that the events were admitted. */
void ingest_guard_headers(struct http_exchange *exchange, const struct ingest_guard *guard);

/* Answer 429: Redis was asked, and the events were not admitted. */
void ingest_guard_refused(struct http_exchange *exchange);

void ingest_guard_release(struct ingest_guard *guard);

/* Add the fields to an answer for which nothing was taken.  Where sites are limited, and the events
 * have several, the fields are those of the site with least left.  Without events they are those of
 * the token's first site, else of the default site. */
void ingest_guard_tell(struct http_exchange *exchange, const struct event *events, size_t n);

/* Add the fields as they would be if @events were sent, for a request that counts nothing, as a
 * HEAD.  False: the events would not be admitted now, and the response is the 429 that they would
 * get. */
bool ingest_guard_foretell(
    struct http_exchange *exchange, const struct event *events, size_t n) MUST_CHECK;

/* Add the fields to an answer that has none yet.  Called once for each answer of a route with
 * ROUTE_GUARDED, after its handler. */
void ingest_guard_dress(struct http_exchange *exchange);

#endif

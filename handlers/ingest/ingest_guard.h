/* ingest_guard.h - the limit on page views, the same for all endpoints that take them.
 *
 * Layer: handlers.  A struct belongs to its request.
 *
 * The ingestion guard (--ingest-limit) limits how many events an address, a token or a site may
 * send.  Answers tell what is left in header fields.  Where there is no guard all of these
 * functions do nothing.  They are called in this order:
 *
 *     ingest_guard_open()     before the body is decoded: is decoding worth it?
 *     ingest_guard_admit()    when the valid events are known, and the job is filled
 *     ingest_guard_headers()  on the answer, if the events were admitted
 *     ingest_guard_refused()  if the job ended with STORAGE_LIMITED
 *     ingest_guard_release()
 *     ingest_guard_tell()     on an answer for which nothing was taken, where the events are known
 *     ingest_guard_dress()    on every answer, last: adds the fields where they are missing
 */
#ifndef HANDLERS_INGEST_INGEST_GUARD_H
#define HANDLERS_INGEST_INGEST_GUARD_H

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* What a request takes from the limit.  Zeroed it is empty. */
struct ingest_guard {
    struct guard_charge one;      /* of a request with one charge alone */
    struct guard_charge *charges; /* &one, or owned */
    size_t n_charges;
    struct event_address address; /* of the client, where addresses are limited */
    struct limit_state state;
    bool told; /* state is known: the guard has admitted the events without asking Redis */
};

/* May a request with a body of @body_n bytes be decoded?  False: no event of it could be admitted
 * now, whatever the body holds, and the response is a 429.  A body that may hold more events than
 * the limit ever lets pass is decoded all the same, because its client must be told so. */
bool ingest_guard_open(struct http_exchange *exchange, size_t body_n) MUST_CHECK;

/* May @n events be written?  False: the response is a 429, or a 503.  True: go on.  If Redis has to
 * be asked first, exchange->job.u.write has the charges now, and storage asks. */
bool ingest_guard_admit(struct http_exchange *exchange, struct ingest_guard *guard,
    const struct event *events, size_t n) MUST_CHECK;

/* Add the fields that tell what is left. */
void ingest_guard_headers(struct http_exchange *exchange, const struct ingest_guard *guard);

/* Answer 429: Redis was asked, and the events were not admitted. */
void ingest_guard_refused(struct http_exchange *exchange);

void ingest_guard_release(struct ingest_guard *guard);

/* Add the fields to an answer for which nothing was taken.  Where sites are limited, and the events
 * have several, the fields are those of the site with least left.  Without events they are those of
 * the token's first site, else of the default site. */
void ingest_guard_tell(struct http_exchange *exchange, const struct event *events, size_t n);

/* The same for a request that is not executed.  False: none of the events would be admitted now,
 * and the response is the 429 that they would get. */
bool ingest_guard_foretell(
    struct http_exchange *exchange, const struct event *events, size_t n) MUST_CHECK;

/* Add the fields to an answer that has none yet.  Called once, last, for the routes with
 * ROUTE_GUARDED. */
void ingest_guard_dress(struct http_exchange *exchange);

#endif

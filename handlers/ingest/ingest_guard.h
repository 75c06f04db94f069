/* ingest_guard.h - the limit on page views, for every door by which they come in.
 *
 * Layer: handlers.  A struct belongs to its request.  Where there is no guard all of this does
 * nothing.  In order:
 *
 *     ingest_guard_open()     before decoding: is it worth it?
 *     ingest_guard_admit()    once the valid events are known, and the job is filled
 *     ingest_guard_headers()  on the answer, if admit() said yes
 *     ingest_guard_refused()  if the job ended with STORAGE_LIMITED
 *     ingest_guard_release()
 *     ingest_guard_tell()     on an answer for which nothing was taken, where it is known for whom
 *     ingest_guard_dress()    on every answer: what is left, if it does not say so by now
 */
#ifndef HANDLERS_INGEST_INGEST_GUARD_H
#define HANDLERS_INGEST_INGEST_GUARD_H

#include "handlers/http/http.h"

/* Zeroed it is empty. */
struct ingest_guard {
    struct guard_charge one;      /* of a request that is all one client's, token's or site's */
    struct guard_charge *charges; /* &one, or owned */
    size_t n_charges;
    struct event_address address;
    struct limit_state state;
    bool told; /* state is known */
};

/* False: nothing of this request could be admitted, whatever is in it, and the response is a 429.
 * @body_n tells how many events it may hold: one that could never be admitted must be told so, and
 * therefore is decoded. */
bool ingest_guard_open(struct http_exchange *exchange, size_t body_n);

/* May @n events be written?  False: the response is a 429, or a 503.  True: go on; if Redis has to
 * be asked first, exchange->job.u.write has the charges, and storage does it. */
bool ingest_guard_admit(struct http_exchange *exchange, struct ingest_guard *guard,
    const struct event *events, size_t n);

void ingest_guard_headers(struct http_exchange *exchange, const struct ingest_guard *guard);
void ingest_guard_refused(struct http_exchange *exchange);
void ingest_guard_release(struct ingest_guard *guard);

/* Nothing was taken: the answer is told what is left, of several sites to the tightest.  Without
 * events, a limit by site tells of the default one, or the token's first. */
void ingest_guard_tell(struct http_exchange *exchange, const struct event *events, size_t n);

/* The same.  False: none of them would be admitted now, and the response is the 429 that they would
 * get. */
bool ingest_guard_foretell(struct http_exchange *exchange, const struct event *events, size_t n);

/* The answer is filled.  Once, last, for the routes that are limited (ROUTE_GUARDED). */
void ingest_guard_dress(struct http_exchange *exchange);

#endif

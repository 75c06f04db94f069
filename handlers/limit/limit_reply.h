/* limit_reply.h - what a client that is limited is told: header fields, and the 429.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * The fields are RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-10) and
 * Retry-After (RFC 9110).
 */
#ifndef HANDLERS_LIMIT_LIMIT_REPLY_H
#define HANDLERS_LIMIT_LIMIT_REPLY_H

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* The names, in the fields, of limits that are no policy's. */
#define LIMIT_NAME_DEFAULT SLICE("default") /* a limit in the body of a request */
#define LIMIT_NAME_GUARD   SLICE("ingest")  /* the limit of the ingestion guard */

/* Add RateLimit-Policy and RateLimit.  Add Retry-After where the request was refused but may pass
 * later.  An answer may have a Retry-After for another reason already.  Then RateLimit comes
 * without t, the time until more can pass, because t must not be later than Retry-After. */
void limit_reply_headers(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state);

/* Does @response have the field RateLimit? */
bool limit_reply_told(const struct http_response *response) MUST_CHECK;

/* Answer 200 {"allowed",..}, and add the fields. */
void limit_reply_allowed(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state);

/* Answer 429, and add the fields.  @limited_by, which may be NULL, names the limit or penalty that
 * refused; nothing in that text needs an escape in JSON. */
void limit_reply_refused(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state, const char *limited_by);

#endif

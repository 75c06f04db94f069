/* limit_reply.h - what a limited request is told: header fields, and the 429.
 *
 * Layer: handlers.  Thread-safe: no state.  Fields: RateLimit-Policy and RateLimit of
 * draft-ietf-httpapi-ratelimit-headers (-10), Retry-After of RFC 9110.
 */
#ifndef HANDLERS_LIMIT_LIMIT_REPLY_H
#define HANDLERS_LIMIT_LIMIT_REPLY_H

#include "handlers/http/http.h"

#define LIMIT_NAME_DEFAULT SLICE("default") /* of a limit that is no policy's */
#define LIMIT_NAME_GUARD   SLICE("ingest")

/* Add RateLimit-Policy and RateLimit, and Retry-After where it was refused but may pass later.
 * @name is one of a policy, or of the above.  On an answer that has a Retry-After for another
 * reason RateLimit comes without t, which must not be later than that. */
void limit_reply_headers(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state);

/* Are they there? */
bool limit_reply_told(const struct http_response *response);

/* {"allowed",..}, 200 or 429 by @state, with the headers. */
void limit_reply(struct http_response *response, struct slice name, const struct limit *limit,
    const struct limit_state *state);

/* A 429 with the headers. */
void limit_reply_refused(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state);

#endif

/* idempotency.h - the header field Idempotency-Key: a request that is sent again counts once.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * Source: draft-ietf-httpapi-idempotency-key-header.  A key is 1 to 128 printable ASCII characters.
 * A client may send the key as it is, or as a string of RFC 8941 section 3.3.3: in quotes, with \"
 * and \\.  Both forms of a key are one key.
 */
#ifndef HANDLERS_INGEST_IDEMPOTENCY_H
#define HANDLERS_INGEST_IDEMPOTENCY_H

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

#define IDEMPOTENCY_KEY_MAX 128

enum idempotency_key {
    IDEMPOTENCY_NONE, /* the request has no such field */
    IDEMPOTENCY_KEY,
    IDEMPOTENCY_MALFORMED,
};

/* Read the key of @request, without quotes, into *ret_n bytes of @key. */
enum idempotency_key idempotency_key_read(
    const struct http_request *request, char key[IDEMPOTENCY_KEY_MAX], size_t *ret_n) MUST_CHECK;

/* The owner of the keys that come with @exchange: the hash of its token, which lives as long as the
 * exchange.  Empty where no tokens are in use: then all clients share one set of keys. */
struct slice idempotency_owner(const struct http_exchange *exchange) MUST_CHECK;

/* Read the key of @exchange's request, or make it of the body if @of_body (`dedupe=body`).  @how
 * says how the body is read, which a repeat must have in common, too (see request_body_digest).
 * *ret_is_keyed: *ret has a key.  False: the response is a 400, for a malformed key, or for a key
 * in the header beside @of_body. */
bool idempotency_request_key(struct http_exchange *exchange, uint64_t how, bool of_body,
    bool *ret_is_keyed, struct request_key *ret) MUST_CHECK;

/* Answer for a request that does not count, because its key was used before.  An earlier body of
 * the response is freed.
 *
 *     @status    the first answer again
 *     422        the key was used with another body */
void idempotency_reply(
    struct http_response *response, unsigned status, const struct request_key *key);

#endif

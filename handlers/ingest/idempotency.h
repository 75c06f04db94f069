/* idempotency.h - the header field Idempotency-Key (draft-ietf-httpapi-idempotency-key-header).
 *
 * Layer: handlers.  Thread-safe: no state.
 * A key is 1 to 128 printable ASCII characters, as they are or as a string of RFC 8941
 * section 3.3.3 (in quotes, with \" and \\): both forms of a key are one key.
 */
#ifndef HANDLERS_INGEST_IDEMPOTENCY_H
#define HANDLERS_INGEST_IDEMPOTENCY_H

#include "handlers/http/http.h"

#define IDEMPOTENCY_KEY_MAX 128

enum idempotency_key {
    IDEMPOTENCY_NONE, /* the request has no such field */
    IDEMPOTENCY_KEY,
    IDEMPOTENCY_MALFORMED,
};

/* The key of @request, without quotes, as *ret_n bytes of @key. */
enum idempotency_key idempotency_key_read(
    const struct http_request *request, char key[IDEMPOTENCY_KEY_MAX], size_t *ret_n);

/* What is wrong with a malformed one. */
#define IDEMPOTENCY_DETAIL                                                                         \
    "Idempotency-Key must be given once: 1 to 128 printable ASCII characters, bare or in quotes"

/* The answer to a request whose key is not ours to execute: the first one again, 409 or 422. */
void idempotency_reply(struct http_response *response, const struct claim *claim);

#endif

/* import_key.h - Idempotency-Keys from what a file holds and where.
 *
 * Layer: service/client, pure.  Not thread-safe.
 *
 * The key of some events is a digest of all events before them, of their lines' numbers and of what
 * is sent.  So a file that is imported again gives the same keys whatever its name, and however the
 * first run ended; the same lines elsewhere in a file, or for another site, give other ones.
 * BLAKE2b.
 */
#ifndef SERVICE_CLIENT_IMPORT_KEY_H
#define SERVICE_CLIENT_IMPORT_KEY_H

#include <stdint.h>

#include "storage/slice.h"

#define IMPORT_KEY_TEXT 48 /* bytes that hold a key and a NUL */

/* A digest of what was passed so far; zeroed at the beginning of a file. */
struct import_chain {
    uint8_t bytes[32];
};

/* The key of events @body, from lines @from to @to, behind @chain. */
void import_key(const struct import_chain *chain, uint64_t from, uint64_t to, struct slice body,
    char ret[IMPORT_KEY_TEXT]);

/* Pass them. */
void import_chain_add(struct import_chain *chain, uint64_t from, uint64_t to, struct slice body);

#endif

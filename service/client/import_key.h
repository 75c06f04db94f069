/* import_key.h - Idempotency-Keys from what a file holds and where.
 *
 * Layer: service/client, pure.  Not thread-safe.
 *
 * The key of some events is a digest of all events before them, of the first one and of its line's
 * number.  So a file that is imported again gives the same keys whatever its name, and however the
 * first run ended; the same lines elsewhere in a file, or for another site, give other ones.  How
 * many events go under a key is not in it: when the file has grown, the server says that a key was
 * used with another body, and import_cut.h tells with which.  BLAKE2b.
 */
#ifndef SERVICE_CLIENT_IMPORT_KEY_H
#define SERVICE_CLIENT_IMPORT_KEY_H

#include <stdint.h>

#include "storage/base/slice.h"

#define IMPORT_KEY_TEXT 48 /* bytes that hold a key and a NUL */

/* A digest of the events passed so far; zeroed at the beginning of a file. */
struct import_chain {
    uint8_t bytes[32];
};

/* The key of events that begin with @event of line @line, behind @chain.  @attempt: 0, or another
 * number for another key of the same events. */
void import_key(const struct import_chain *chain, uint64_t line, struct slice event,
    unsigned attempt, char ret[IMPORT_KEY_TEXT]);

/* *ret: @chain and @event of line @line behind it; they may be the same. */
void import_chain_add(
    const struct import_chain *chain, uint64_t line, struct slice event, struct import_chain *ret);

#endif

/* import_key.h - make Idempotency-Keys from what a file holds, and where.
 *
 * Layer: service/client, pure.  Thread-safe.
 *
 * The key of a request is a digest (BLAKE2b) of three things: all events before its first event,
 * that first event, and the number of its line.  So a file that is imported again gives the same
 * keys, whatever its name, and however the first import ended.  The same lines elsewhere in a file,
 * or for another site, give other keys.
 *
 * How many events go under a key is not part of the key.  When the file has grown, the server says
 * that the key was used with another body, and import_cut.h finds that body.
 *
 * A follower writes down what it sends (follow_store.h).  So its keys need only tell one piece from
 * all others: a file, and the piece's bounds.
 */
#ifndef SERVICE_CLIENT_IMPORT_KEY_H
#define SERVICE_CLIENT_IMPORT_KEY_H

#include <stdint.h>

#include "storage/base/slice.h"

#define IMPORT_KEY_TEXT 48 /* bytes that hold a key and a NUL */

/* A digest of the events so far.  Zeroed at the beginning of a file. */
struct import_chain {
    uint8_t bytes[32];
};

/* The key of events that begin with @event of line @line, behind @chain.  @attempt is 0, or another
 * number for another key of the same events. */
void import_key(const struct import_chain *chain, uint64_t line, struct slice event,
    unsigned attempt, char ret[IMPORT_KEY_TEXT]);

/* The name of a file in the keys of its pieces: random bytes. */
struct import_file_id {
    uint8_t bytes[16];
};

/* The key of bytes [@from, @to) of the file @id: the same, whenever that piece is sent.  @attempt
 * is 0, or another number for another key of the same bytes. */
void import_piece_key(const struct import_file_id *id, int64_t from, int64_t to, unsigned attempt,
    char ret[IMPORT_KEY_TEXT]);

/* Set *ret to @chain, extended by @event of line @line.  @chain and @ret may be the same. */
void import_chain_add(
    const struct import_chain *chain, uint64_t line, struct slice event, struct import_chain *ret);

#endif

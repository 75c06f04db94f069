/* import_batch.h - events on their way into one POST /events, as NDJSON.
 *
 * Layer: service/client (no I/O).  Not thread-safe.  Each event keeps the number of the line it
 * came from, so that what the server says about an event can be said about the line.  Any run of
 * events in a batch is a body of its own: import_batch_body().
 */
#ifndef SERVICE_CLIENT_IMPORT_BATCH_H
#define SERVICE_CLIENT_IMPORT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "service/client/access_log.h"
#include "storage/base/slice.h"

#define IMPORT_BATCH_EVENTS 1024 /* a power of two: import_cut.h */
#define IMPORT_BATCH_BYTES  (1024 * 1024)

struct import_batch;

/* NULL: no memory.  @site: NULL, or what events get that have none; borrowed. */
struct import_batch *import_batch_new(const char *site);
void import_batch_free(struct import_batch *batch); /* NULL is fine */

size_t import_batch_count(const struct import_batch *batch);
void import_batch_clear(struct import_batch *batch);

/* True if the next event might not fit: send and clear it before adding one.  It depends on the
 * events in it alone. */
bool import_batch_full(const struct import_batch *batch);

/* Line @number, an ACCESS_LOG_EVENT, as an event.  Its visitor: `ip` and `ua` as the log has them.
 * A host that is no address cannot be an `ip`; it becomes the `user` "host-<32 hex digits>",
 * BLAKE2b-128 of "HOST|UA": the same host and browser is one visitor, its name is not in the clear
 * (but an unkeyed hash: who guesses a name can check it), and it counts no IP. */
void import_batch_add_event(
    struct import_batch *batch, const struct access_log_line *line, uint64_t number);

/* Line @number of an NDJSON file: as it stands, or with the batch's site put in front if it has
 * none. False: a site is to be set, and the line is no JSON object; nothing was added. */
bool import_batch_add_json(struct import_batch *batch, struct slice line, uint64_t number);

/* Number of the line that event @index came from. */
uint64_t import_batch_line(const struct import_batch *batch, size_t index);

/* Events [@first, @first + @count) as a body; points into the batch. */
struct slice import_batch_body(const struct import_batch *batch, size_t first, size_t count);

/* Is event @index a JSON object?  Not cheap: for lines the server rejected. */
bool import_batch_is_object(const struct import_batch *batch, size_t index);

#endif

/* import_batch.h - gather events, as NDJSON, for one POST /events.
 *
 * Layer: service/client, no I/O.  Not thread-safe.
 *
 * Each event keeps the number of its line in the file.  So what the server says about an event can
 * be said about the line.  Any run of events in a batch can be posted as a body of its own
 * (import_batch_body).
 */
#ifndef SERVICE_CLIENT_IMPORT_BATCH_H
#define SERVICE_CLIENT_IMPORT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "service/formats/log_line.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define IMPORT_BATCH_EVENTS 1024 /* a power of two, for import_cut.h */
#define IMPORT_BATCH_BYTES  (1024 * 1024)

struct import_batch;

/* An empty batch.  @site, if not NULL, is the site of events that name none; it is borrowed.  NULL:
 * out of memory. */
struct import_batch *import_batch_new(const char *site) MUST_CHECK;
void import_batch_free(struct import_batch *batch); /* NULL is fine */

size_t import_batch_count(const struct import_batch *batch); /* the number of events */
void import_batch_clear(struct import_batch *batch);

/* May the next event not fit?  Then the batch must be sent and cleared first.  The result depends
 * only on the events in the batch. */
bool import_batch_full(const struct import_batch *batch);

/* Add the request of line @number as an event of @site, or of the batch's site if @site is empty.
 * The event's visitor is `ip` and `ua` as in the log.
 *
 * A host that is no address cannot be an `ip`, and counts no address.  Such a host becomes the
 * `user` "host-<32 hex digits>", BLAKE2b-128 of "HOST|UA".  So the same host with the same browser
 * is one visitor, and the host's name is not sent.  The hash has no key: a guessed name can be
 * checked. */
void import_batch_add_event(
    struct import_batch *batch, const struct log_line *line, struct slice site, uint64_t number);

/* Add line @number of an NDJSON file as it stands.  If the batch has a site and the line has none,
 * the site is put in front.  False: nothing was added, because the site is to be put into a line
 * that is no JSON object. */
bool import_batch_add_json(
    struct import_batch *batch, struct slice line, uint64_t number) MUST_CHECK;

/* The number of the line that event @index came from. */
uint64_t import_batch_line(const struct import_batch *batch, size_t index);

/* Events [@first, @first + @count) as a body, which points into the batch. */
struct slice import_batch_body(const struct import_batch *batch, size_t first, size_t count);

/* Is event @index a JSON object?  The check is not cheap: use it for lines that the server
 * rejected. */
bool import_batch_is_object(struct import_batch *batch, size_t index);

#endif

/* import_send.h - send a batch so that no event counts twice, whatever was sent before.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 *
 * import_key.h says what a key stands for, and import_cut.h how a batch is cut.  Two cases need
 * more:
 *
 * - A server remembers no request of which it took nothing.  After such a request, a list without
 *   events is counted under the request's key: a mark, as long as the request had events.  Without
 *   the mark, a later import of the grown file would take the key for a new one, and count again
 *   what was sent behind the request.
 * - Two files may begin alike and differ behind the first event of a request.  They cannot share
 *   the request's key, so the second file takes another.
 */
#ifndef SERVICE_CLIENT_IMPORT_SEND_H
#define SERVICE_CLIENT_IMPORT_SEND_H

#include <stdbool.h>

#include "service/client/import_batch.h"
#include "service/client/import_key.h"
#include "service/client/import_report.h"
#include "service/client/import_upload.h"
#include "storage/base/compiler.h"

struct import_sender {
    struct import_upload *upload; /* borrowed, like the next two */
    struct import_batch *batch;
    struct import_report *report;
    size_t request_max;    /* the most events that the server takes at once */
    bool answered, waited; /* the server has answered, or was waited for, at least once */
    /* [i] is the digest of all events before event i of the batch; [0] goes on from batch to
     * batch. */
    struct import_chain chains[IMPORT_BATCH_EVENTS + 1];
};

/* The batch is complete: compute the digests that its keys are made of. */
void import_sender_begin(struct import_sender *sender);

/* The batch was sent, and will be cleared. */
void import_sender_end(struct import_sender *sender);

/* Send events from @first on, at most up to @count, or find that an earlier import has sent them. A
 * request is repeated while that is safe and may help.  *ret_count is how many events the request
 * had, whatever the result.  @closed: the batch would end at @count even if the file went on. */
enum import_upload_result import_send(struct import_sender *sender, size_t first, size_t count,
    bool closed, size_t *ret_count, struct import_upload_answer *ret) MUST_CHECK;

#endif

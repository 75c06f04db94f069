/* import_send.h - sending a batch so that nothing in it counts twice, whatever was sent before.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 *
 * import_key.h says what a key stands for, import_cut.h how a batch is cut.  Two cases more:
 *
 * - A server remembers no request of which it took nothing.  In its place a list without events is
 *   counted under its key, as long as the request had events (a mark).  Otherwise the next run,
 *   should the file have grown, would take the key for a new one, and count again what was sent
 *   behind it.
 * - Files that begin alike and differ behind the first event of a request cannot share its key: the
 *   second one takes another.
 */
#ifndef SERVICE_CLIENT_IMPORT_SEND_H
#define SERVICE_CLIENT_IMPORT_SEND_H

#include <stdbool.h>

#include "service/client/import_batch.h"
#include "service/client/import_key.h"
#include "service/client/import_report.h"
#include "service/client/import_upload.h"

struct import_sender {
    struct import_upload *upload; /* borrowed, as the next two */
    struct import_batch *batch;
    struct import_report *report;
    size_t request_max;    /* events; less than a batch if the server takes no more at once */
    bool answered, waited; /* ever */
    /* Of the events before event i of the batch; [0] is carried from batch to batch. */
    struct import_chain chains[IMPORT_BATCH_EVENTS + 1];
};

/* The batch is complete: make what its keys are made of. */
void import_sender_begin(struct import_sender *sender);

/* It was sent, and will be cleared. */
void import_sender_end(struct import_sender *sender);

/* Send events from @first on, at most up to @count, or find that an earlier run has sent them:
 * again while that is worth it and safe.  *ret_count: how many, whatever the result.  @closed: the
 * batch would end at @count if the file went on. */
enum import_upload_result import_send(struct import_sender *sender, size_t first, size_t count,
    bool closed, size_t *ret_count, struct import_upload_answer *ret);

#endif

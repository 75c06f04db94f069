/* follow.h - `tallyd import --follow`: send an access log as it grows and rotates, until SIGTERM.
 *
 * Layer: service/client.  Blocking.  Handles SIGTERM and SIGINT.  One call a process.
 *
 *   follow_files    which files there are, and which have grown
 *   follow_piece    what they have grown by, as a batch of events
 *   follow_send     the batch is counted once
 *   follow_store    how far all that has come, on the disk
 *
 * What was written is sent half a second later at the most, or when it is much.  A server that is
 * away is waited for, however long: the log is the queue.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_H

#include "service/client/import_options.h"
#include "storage/base/compiler.h"

/* Follow the log of @options.  False: that ended by something other than a signal, and it was said
 * what.  Everything that was not counted is found by the next call. */
bool follow_run(const struct import_options *options) MUST_CHECK;

#endif

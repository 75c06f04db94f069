/* follow.h - `tallyd import --follow`: send an access log as it grows and rotates, until SIGTERM.
 *
 * Layer: service/client.  Blocking.  Handles SIGTERM and SIGINT.  One call a process.
 *
 *   follow_files    finds which files there are, and which have grown
 *   follow_piece    reads the bytes by which a file has grown, as a batch of events
 *   follow_send     sends the batch such that it is counted once
 *   follow_store    keeps on the disk how far all files were sent
 *
 * What was written to the log is sent half a second later at the most, and sooner when it is much.
 * The follower waits for a server that is away, however long: the log is the queue.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_H

#include "service/client/import_options.h"
#include "storage/base/compiler.h"

/* Follow the log of @options.  False: something other than a signal has ended that, and a message
 * says what.  The next process finds everything that was not counted. */
bool follow_run(const struct import_options *options) MUST_CHECK;

#endif

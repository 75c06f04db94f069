/* probe.h - is Redis ready?  One write that proves that it takes writes.
 *
 * Layer: storage, an operation of the readers.
 */
#ifndef STORAGE_READ_PROBE_H
#define STORAGE_READ_PROBE_H

#include "storage/read/operation.h"

/* STORAGE_PROBE: a reader_op_fn.  It writes a key that expires after a minute. */
enum storage_err probe_run(struct reader *reader, struct storage_job *job, bool *ret_lost);

#endif

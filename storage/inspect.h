/* inspect.h - look at the servers that have the data, and give a partition its state back, from
 * outside of a service: for the command `tallyd cluster`.
 *
 * Layer: storage, beside its door.  Thread-safe: no state.  Connects, asks, and leaves.
 */
#ifndef STORAGE_INSPECT_H
#define STORAGE_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/job/job.h"

/* Which servers have the data of @url, and how are they?  By @deadline_ms (CLOCK_MONOTONIC), into
 * ret->u.cluster; release with storage_job_release().  Writes nothing.  False: @error, of @error_n
 * bytes, says why; there is nothing to release. */
bool storage_inspect(const char *url, int64_t deadline_ms, struct storage_job *ret, char *error,
    size_t error_n) MUST_CHECK;

/* Give @partition, which has lost its state with all it had counted, a first state again.  What is
 * left in logs is counted in it.  False: it has a state, or another server has keys of its slot, or
 * no partition is left to learn the settings from, and nothing was done; or it could not be done:
 * @error says. */
bool storage_reset_partition(const char *url, unsigned partition, int64_t deadline_ms, char *error,
    size_t error_n) MUST_CHECK;

#endif

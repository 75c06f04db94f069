/* inspect.h - looks at the servers that have the data, and gives a partition its state back.
 *
 * Layer: storage, beside its door.  Thread-safe: no state.
 *
 * These functions are for the command `tallyd cluster`, which runs outside of a service.  Each
 * makes connections of its own, and closes them.
 */
#ifndef STORAGE_INSPECT_H
#define STORAGE_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/job/job.h"

/* Find out by @deadline_ms (CLOCK_MONOTONIC) which servers have the data of @url, and how they are.
 * The answer is in ret->u.cluster, which the caller releases with storage_job_release().  Nothing
 * is written to Redis.  False: @error, of @error_n bytes, says why; there is nothing to release. */
bool storage_inspect(const char *url, int64_t deadline_ms, struct storage_job *ret, char *error,
    size_t error_n) MUST_CHECK;

/* Give @partition, which has lost its state and all counts, a first state again, by @deadline_ms
 * (CLOCK_MONOTONIC).  What is left in logs is counted in the partition afterwards.  False: nothing
 * was done, because the partition has a state, its slot has other keys that need one, or no
 * partition is left to learn the settings from; or a server did not answer.  @error, of @error_n
 * bytes, says which. */
bool storage_reset_partition(const char *url, unsigned partition, int64_t deadline_ms, char *error,
    size_t error_n) MUST_CHECK;

#endif

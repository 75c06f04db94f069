/* late_periods.h - rotation periods whose secret was made anew after it had been thrown away.
 *
 * Layer: storage.  Belongs to a reader thread.
 */
#ifndef STORAGE_READ_LATE_PERIODS_H
#define STORAGE_READ_LATE_PERIODS_H

#include "storage/base/compiler.h"
#include "storage/read/operation.h"

/* Learn from Redis which periods were late (core/period_secrets.h); without rotation there are
 * none.  All late periods are learnt that have events which were acknowledged before, because a
 * late period is noted before its secret is made.  @deadline_ms: CLOCK_MONOTONIC.  On any result
 * but STORAGE_OK nothing was learnt. */
enum storage_err late_periods_learn(
    struct reader *reader, int64_t deadline_ms, bool *ret_lost) MUST_CHECK;

#endif

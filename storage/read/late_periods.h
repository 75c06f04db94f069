/* late_periods.h - rotation periods whose secret was made anew after it had been thrown away.
 *
 * Layer: storage.  A reader's thread.
 */
#ifndef STORAGE_READ_LATE_PERIODS_H
#define STORAGE_READ_LATE_PERIODS_H

#include "storage/base/compiler.h"
#include "storage/read/operation.h"

/* Where visitors rotate: learn from Redis which periods were late (core/period_secrets.h).  What
 * was acknowledged before is told, because a late period is noted before its secret is made.
 * @deadline_ms: CLOCK_MONOTONIC.  Anything but STORAGE_OK: nothing was learnt. */
enum storage_err late_periods_learn(
    struct reader *reader, int64_t deadline_ms, bool *ret_lost) MUST_CHECK;

#endif

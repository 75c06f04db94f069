/* clock.h - the time since some fixed moment in the past, for deadlines and pauses.
 *
 * Layer: storage, at the bottom.  Thread-safe.
 *
 * The clock is CLOCK_MONOTONIC: it never goes back and nobody can set it.  It says nothing of the
 * date.  The deadline of every job is a time of this clock.
 */
#ifndef STORAGE_BASE_CLOCK_H
#define STORAGE_BASE_CLOCK_H

#include <stdint.h>

/* Now, in microseconds or in milliseconds. */
int64_t monotonic_us(void);
int64_t monotonic_ms(void);

#endif

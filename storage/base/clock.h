/* clock.h - the time since some fixed moment, which nobody can set: CLOCK_MONOTONIC.
 *
 * Layer: storage, at the bottom.  Thread-safe.  Deadlines of jobs are of this clock.
 */
#ifndef STORAGE_BASE_CLOCK_H
#define STORAGE_BASE_CLOCK_H

#include <stdint.h>

int64_t monotonic_us(void);
int64_t monotonic_ms(void);

#endif

/* clock.h - Redis's clock as seen from here: a lower bound that never runs ahead.
 *
 * Layer: storage.  Thread-safe.
 * A TIME in a reply was taken before the reply came; add the monotonic time since it came and the
 * sum cannot be later than Redis's clock now.  The best of these bounds is kept; if Redis's clock
 * was set back by more than a second, the bound follows it.  The wall clock of this machine is
 * never asked.
 */
#ifndef STORAGE_BASE_CLOCK_H
#define STORAGE_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC. */
int64_t monotonic_us(void);
int64_t monotonic_ms(void);

struct redis_clock {
    _Atomic int64_t ahead_us; /* Redis's clock minus ours, a lower bound; 0: unknown */
};

/* A reply that just came said that it was @redis_us (UTC).  True if it was the first, or if Redis's
 * clock was set forward or back since, by more than a second. */
bool redis_clock_seen(struct redis_clock *clock, int64_t redis_us);

/* UTC milliseconds; 0 as long as nothing was seen. */
int64_t redis_clock_ms(struct redis_clock *clock);

#endif

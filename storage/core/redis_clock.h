/* redis_clock.h - Redis's clock as seen from here: a lower bound that never runs ahead.
 *
 * Layer: storage.  Thread-safe.
 * A TIME in a reply was taken before the reply came.  So that TIME, plus the monotonic time since
 * the reply, is never later than Redis's clock now.  The best of these bounds is kept.  When
 * Redis's clock was set back by more than a second, the bound follows the clock.  The wall clock of
 * this machine is never asked.
 */
#ifndef STORAGE_CORE_REDIS_CLOCK_H
#define STORAGE_CORE_REDIS_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct redis_clock {
    _Atomic int64_t ahead_us; /* Redis's clock minus ours, a lower bound; 0: unknown */
};

/* A reply that just came said that it was @redis_us (UTC).  True if it was the first, or if Redis's
 * clock was set forward or back since, by more than a second. */
bool redis_clock_seen(struct redis_clock *clock, int64_t redis_us);

/* UTC milliseconds; 0 as long as nothing was seen. */
int64_t redis_clock_ms(struct redis_clock *clock);

#endif

/* redis_clock.h - Redis's clock as seen from here: a lower bound that never runs ahead.
 *
 * Layer: storage.  Thread-safe.
 *
 * All processes use one clock, that of Redis; the wall clock of this machine is never asked.  A
 * reply to TIME was made before it came.  So its time, plus the monotonic time since it came, is
 * never later than Redis's clock now.  The best of these bounds is kept.  When Redis's clock is set
 * back by more than a second, the bound follows.
 *
 * When Redis's clock was set forward, another connection may still have a reply from before.  So
 * the bound does not follow back for CLOCK_STEADY_US.
 */
#ifndef STORAGE_CORE_REDIS_CLOCK_H
#define STORAGE_CORE_REDIS_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_STEADY_US 1000000

struct redis_clock {
    _Atomic int64_t ahead_us;  /* Redis's clock minus CLOCK_MONOTONIC, at least; 0: unknown */
    _Atomic int64_t jumped_us; /* CLOCK_MONOTONIC when it was set forward last; 0: never */
};

/* Note that a reply that just came had the time @redis_us, UTC in microseconds.  True: it was the
 * first such reply, or Redis's clock was set by more than a second since the last one. */
bool redis_clock_seen(struct redis_clock *clock, int64_t redis_us);

/* Redis's clock now, in UTC milliseconds, or a little less.  0: no reply was seen yet. */
int64_t redis_clock_ms(struct redis_clock *clock);

#endif

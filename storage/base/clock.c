#include "storage/base/clock.h"

#include <time.h>

#define SET_US 1000000 /* a difference that is no delay: the clock was set */

int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t monotonic_ms(void)
{
    return monotonic_us() / 1000;
}

bool redis_clock_seen(struct redis_clock *clock, int64_t redis_us)
{
    int64_t bound = redis_us - monotonic_us();
    int64_t best = atomic_load(&clock->ahead_us);
    while (best == 0 || bound > best || bound < best - SET_US) {
        if (atomic_compare_exchange_weak(&clock->ahead_us, &best, bound)) {
            return best == 0 || bound > best + SET_US || bound < best - SET_US;
        }
    }
    return false;
}

int64_t redis_clock_ms(struct redis_clock *clock)
{
    int64_t ahead = atomic_load(&clock->ahead_us);
    return ahead == 0 ? 0 : (monotonic_us() + ahead) / 1000;
}

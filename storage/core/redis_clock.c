#include "storage/core/redis_clock.h"

#include "storage/base/clock.h"

#define SET_US 1000000 /* a difference that is no delay: the clock was set */

/* May a reply that came at @now_us have been made before Redis's clock was set forward? */
static bool is_early(struct redis_clock *clock, int64_t now_us)
{
    int64_t jumped_us = atomic_load(&clock->jumped_us);
    return jumped_us != 0 && now_us - jumped_us < CLOCK_STEADY_US;
}

bool redis_clock_seen(struct redis_clock *clock, int64_t redis_us)
{
    int64_t now_us = monotonic_us();
    int64_t bound = redis_us - now_us;
    int64_t best = atomic_load(&clock->ahead_us);
    while (best == 0 || bound > best || (bound < best - SET_US && !is_early(clock, now_us))) {
        if (best != 0 && bound > best + SET_US) {
            atomic_store(&clock->jumped_us, now_us);
        }
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

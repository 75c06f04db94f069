#include "storage/job/stats.h"

#include <stddef.h>

void storage_histogram_observe(struct storage_histogram *histogram, int64_t us)
{
    static const int64_t bounds_us[] = {
#define X(us, text) us,
        STORAGE_BOUNDS(X)
#undef X
    };
    size_t i = 0;
    while (i < STORAGE_N_BOUNDS && us > bounds_us[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&histogram->slower_than[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, us, memory_order_relaxed);
}

#include "storage/core/wake.h"

#include "storage/base/clock.h"
#include "storage/base/cond.h"

void wake_init(struct wake *wake)
{
    mutex_init(&wake->lock);
    cond_init(&wake->cond);
    wake->is_set = false;
}

void wake_release(struct wake *wake)
{
    pthread_cond_destroy(&wake->cond);
    pthread_mutex_destroy(&wake->lock);
}

void wake_up(struct wake *wake)
{
    pthread_mutex_lock(&wake->lock);
    wake->is_set = true;
    pthread_cond_signal(&wake->cond);
    pthread_mutex_unlock(&wake->lock);
}

void wake_sleep(struct wake *wake, int64_t until_ms)
{
    pthread_mutex_lock(&wake->lock);
    while (!wake->is_set && monotonic_ms() < until_ms) {
        cond_wait_until_ms(&wake->cond, &wake->lock, until_ms);
    }
    wake->is_set = false;
    pthread_mutex_unlock(&wake->lock);
}

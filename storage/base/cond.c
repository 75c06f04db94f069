#include "storage/base/cond.h"

#include <stdlib.h>
#include <time.h>

void mutex_init(pthread_mutex_t *lock)
{
    if (pthread_mutex_init(lock, NULL) != 0) {
        abort(); /* glibc never fails for a plain lock */
    }
}

void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0 ||
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) != 0 ||
        pthread_cond_init(cond, &attr) != 0) {
        abort(); /* glibc fails only for a clock that does not exist */
    }
    (void)pthread_condattr_destroy(&attr);
}

void cond_wait_until_us(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_us)
{
    if (until_us == INT64_MAX) {
        (void)pthread_cond_wait(cond, lock);
        return;
    }
    struct timespec until = {
        .tv_sec = until_us / 1000000, .tv_nsec = (long)(until_us % 1000000) * 1000};
    (void)pthread_cond_timedwait(cond, lock, &until); /* ETIMEDOUT: the caller looks again */
}

void cond_wait_until_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ms)
{
    cond_wait_until_us(cond, lock, until_ms > INT64_MAX / 1000 ? INT64_MAX : until_ms * 1000);
}

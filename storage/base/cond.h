/* cond.h - locks, and condition variables whose deadlines are times of the monotonic clock.
 *
 * Layer: storage, at the bottom.
 *
 * A plain condition variable waits by the wall clock, which may be set.  These wait by the clock of
 * base/clock.h.  They are plain pthread_cond_t: signal, broadcast, destroy, and waiting without a
 * deadline are pthread's own.
 */
#ifndef STORAGE_BASE_COND_H
#define STORAGE_BASE_COND_H

#include <pthread.h>
#include <stdint.h>

/* Both end the process if the system has no such thing: nothing could be relied on.  Linux always
 * has. */
void mutex_init(pthread_mutex_t *lock);
void cond_init(pthread_cond_t *cond);

/* Wait, with @lock held, for a signal or until that time of CLOCK_MONOTONIC; INT64_MAX: for a signal
 * only.  As with every condition variable the caller looks again at what it waits for. */
void cond_wait_until_us(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_us);
void cond_wait_until_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ms);

#endif

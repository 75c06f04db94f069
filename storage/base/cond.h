/* cond.h - condition variables whose deadlines are of the monotonic clock.
 *
 * Layer: storage, at the bottom.  A deadline of the wall clock would move when somebody sets that
 * clock.  These functions make, and wait on, plain pthread_cond_t; all else (signal, broadcast,
 * destroy, waiting without a deadline) is pthread's own.
 */
#ifndef STORAGE_BASE_COND_H
#define STORAGE_BASE_COND_H

#include <pthread.h>
#include <stdint.h>

/* Ends the process if the system has no such condition variables: nothing could be relied on. */
void cond_init(pthread_cond_t *cond);

/* Wait, under @lock, for a signal or until that moment of CLOCK_MONOTONIC.  As with every condition
 * variable the caller looks again at what it waits for. */
void cond_wait_until_us(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_us);
void cond_wait_until_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ms);

#endif

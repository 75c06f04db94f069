/* cond.h - locks, and condition variables whose deadlines are times of the monotonic clock.
 *
 * Layer: storage, at the bottom.  Thread-safe, as locks and condition variables are.
 *
 * A deadline on the wall clock moves when somebody sets that clock; a deadline on the clock of
 * clock.h does not.  These functions make a plain pthread_mutex_t or pthread_cond_t.  Locking,
 * signalling, destroying and waiting without a deadline are pthread's own functions.
 */
#ifndef STORAGE_BASE_COND_H
#define STORAGE_BASE_COND_H

#include <pthread.h>
#include <stdint.h>

/* Make a lock, or a condition variable.  Both end the process if the system has none to give: no
 * caller could go on without.  On Linux that does not happen. */
void mutex_init(pthread_mutex_t *lock);
void cond_init(pthread_cond_t *cond);

/* Wait for a signal, at most until @until_us or @until_ms (CLOCK_MONOTONIC); INT64_MAX: without a
 * deadline.  The caller holds @lock.  As with every condition variable, the caller checks its
 * condition again afterwards. */
void cond_wait_until_us(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_us);
void cond_wait_until_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ms);

#endif

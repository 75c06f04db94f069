/* wake.h - a thread sleeps until its time has come, or until another thread wakes it.
 *
 * Layer: storage.  Thread-safe: one thread sleeps, any thread wakes it.
 *
 * A wake_up() that comes while the thread is awake is not lost: the next sleep ends at once.
 */
#ifndef STORAGE_CORE_WAKE_H
#define STORAGE_CORE_WAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct wake {
    pthread_mutex_t lock; /* a leaf: under it no other lock is taken, and no function called */
    pthread_cond_t cond;  /* CLOCK_MONOTONIC */
    bool is_set;
};

void wake_init(struct wake *wake);
void wake_release(struct wake *wake);

void wake_up(struct wake *wake);

/* Sleep until wake_up(), but not beyond @until_ms (CLOCK_MONOTONIC). */
void wake_sleep(struct wake *wake, int64_t until_ms);

#endif

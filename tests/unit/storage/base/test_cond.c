#include "storage/base/cond.h"

#include <criterion/criterion.h>

#include "storage/base/clock.h"

TestSuite(cond, .timeout = 60);

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t came;
    bool here;
};

static void *arrive(void *data)
{
    struct meeting *m = data;
    pthread_mutex_lock(&m->lock);
    m->here = true;
    pthread_cond_signal(&m->came);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

Test(cond, a_time_that_is_over_is_not_waited_for)
{
    struct meeting m = {.here = false};
    mutex_init(&m.lock);
    cond_init(&m.came);
    pthread_mutex_lock(&m.lock);
    cond_wait_until_us(&m.came, &m.lock, monotonic_us() - 1);
    cond_wait_until_ms(&m.came, &m.lock, 0);
    pthread_mutex_unlock(&m.lock);
    pthread_cond_destroy(&m.came);
    pthread_mutex_destroy(&m.lock);
}

/* By the wall clock the times below are long over, and the loops would spin. */
Test(cond, sleeps_until_a_time_of_the_monotonic_clock)
{
    struct meeting m = {.here = false};
    mutex_init(&m.lock);
    cond_init(&m.came);
    int64_t until_ms = monotonic_ms() + 20;
    unsigned waits = 0;
    pthread_mutex_lock(&m.lock);
    for (; monotonic_ms() < until_ms; waits++) {
        cond_wait_until_ms(&m.came, &m.lock, until_ms);
    }
    int64_t until_us = monotonic_us() + 20000;
    for (; monotonic_us() < until_us; waits++) {
        cond_wait_until_us(&m.came, &m.lock, until_us);
    }
    pthread_mutex_unlock(&m.lock);
    cr_expect(waits < 20, "%u times", waits);
    pthread_cond_destroy(&m.came);
    pthread_mutex_destroy(&m.lock);
}

Test(cond, a_signal_ends_a_wait_without_a_deadline)
{
    struct meeting m = {.here = false};
    pthread_t thread;
    mutex_init(&m.lock);
    cond_init(&m.came);
    pthread_mutex_lock(&m.lock);
    cr_assert_eq(pthread_create(&thread, NULL, arrive, &m), 0);
    while (!m.here) {
        cond_wait_until_ms(&m.came, &m.lock, INT64_MAX);
    }
    pthread_mutex_unlock(&m.lock);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    pthread_cond_destroy(&m.came);
    pthread_mutex_destroy(&m.lock);
}

/* guard_fixture.h - an ingestion guard alone: the test is Redis, the writer and the clock.
 *
 * There is one fixture in a process, because each test is a process of its own.
 */
#ifndef TESTS_LIB_GUARD_FIXTURE_H
#define TESTS_LIB_GUARD_FIXTURE_H

#include "storage/limit/guard.h"

#define GUARD_SECOND_US INT64_C(1000000)
#define GUARD_CAPACITY  64 /* so many events can pass at once, and one comes back in a second */
#define GUARD_LEASE     2  /* 1/32 of it */
#define GUARD_SENT_MAX  16

struct guard_fixture {
    struct core *core;
    struct guard *guard;                      /* counts by site */
    int64_t now_us;                           /* what the clock says */
    struct storage_job *sent[GUARD_SENT_MAX]; /* leases, and jobs that go on to the writer */
    size_t n_sent;
    enum storage_err send_err; /* why nothing more can be sent */
    unsigned n_done;           /* jobs of guard_write_of() that are done */
    enum storage_err done_err; /* the outcome of the last one */
};
extern struct guard_fixture guarded;

/* Make the fixture; free it. */
void guard_fixture_setup(void);
void guard_fixture_teardown(void);

/* Make the guard anew, by what the core has now. */
void guard_remake(void);

/* A write of @n_charges charges that has waited for nothing yet. */
struct storage_job guard_write_of(const struct guard_charge *charges, size_t n_charges);

/* Redis answers lease @i: it grants @granted, @remaining are left, and all is free in @reset_us. */
void guard_answer(size_t i, int64_t granted, int64_t remaining, int64_t reset_us);

#endif

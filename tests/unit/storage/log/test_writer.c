/* How many of the requests that wait become one entry. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/base/cond.h"
#include "storage/core/core.h"
#include "storage/log/writer.h"
#include "storage/log/writer_state.h"

#define JOBS     8
#define KB       ((size_t)1024)
#define NO_BOUND SIZE_MAX

static struct writer *writer;
static struct storage_job jobs[JOBS];
static struct request_key key;
static size_t n_jobs;

static void setup(void)
{
    writer = calloc(1, sizeof(*writer));
    struct core *core = calloc(1, sizeof(*core));
    cr_assert(writer != NULL && core != NULL);
    writer->core = core;
    mutex_init(&writer->lock);
}

static void teardown(void)
{
    pthread_mutex_destroy(&writer->lock);
    free(writer->core);
    free(writer);
}

TestSuite(writer, .timeout = 60, .init = setup, .fini = teardown);

/* A request waits, of @events and @bytes. */
static void put(size_t events, size_t bytes, bool has_key)
{
    cr_assert_lt(n_jobs, (size_t)JOBS);
    jobs[n_jobs] = (struct storage_job){.cost = events,
        .chunk = {NULL, bytes},
        .u.write = {.n = events, .keyed = has_key ? &key : NULL}};
    job_queue_append(&writer->queue, &jobs[n_jobs++]);
}

/* @n requests become the next entry. */
static void expect(size_t room, size_t n)
{
    size_t is = 0;
    for (const struct storage_job *job = writer_take_jobs(writer, 1, room); job != NULL;
         job = job->next) {
        is++;
    }
    cr_expect_eq(is, n, "%zu, not %zu", is, n);
}

/* Redis does nothing else while it copies an entry. */
Test(writer, an_entry_of_several_requests_ends_at_half_a_megabyte)
{
    put(1, 300 * KB, false);
    put(1, 300 * KB, false);
    put(1, 300 * KB, false);
    put(1, 8000 * KB, false);
    put(1, 1, false);
    expect(NO_BOUND, 2);
    expect(NO_BOUND, 2); /* a request is never cut, so this entry is longer */
    expect(NO_BOUND, 1);
    expect(NO_BOUND, 0);
}

Test(writer, an_entry_ends_at_ten_thousand_events)
{
    put(9999, 1, false);
    put(2, 1, false);
    put(10000, 1, false);
    put(1, 1, false);
    expect(NO_BOUND, 1);
    expect(NO_BOUND, 1);
    expect(NO_BOUND, 1);
    expect(NO_BOUND, 1);
}

/* Each of its events is four words of a script. */
Test(writer, an_entry_of_requests_with_a_key_is_small)
{
    put(600, 1, true);
    put(400, 1, true);
    put(1, 1, true);
    put(1500, 1, false);
    put(1, 1, true);
    expect(NO_BOUND, 2);
    expect(NO_BOUND, 1);
    expect(NO_BOUND, 1);
    expect(NO_BOUND, 1);
}

Test(writer, an_entry_takes_no_more_than_there_is_room_for)
{
    put(3, 1, false);
    put(3, 1, false);
    put(3, 1, false);
    put(3, 1, false);
    expect(6, 2);
    expect(1, 1);
    cr_expect_null(writer_take_jobs(writer, 4, NO_BOUND), "too few wait");
    expect(NO_BOUND, 1);
}

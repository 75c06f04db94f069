#include "storage/log/entry.h"

#include <criterion/criterion.h>

#include "storage/job/request_key.h"

/* What an entry takes of the bounds: of what waits to be folded, and of what is held. */
TestSuite(entry, .timeout = 60);

#define CHUNK  100000 /* bytes: far more than an entry takes without a request */
#define ANSWER 50000

static char bytes[CHUNK];

static size_t bytes_of(struct storage_job *job)
{
    struct entry_scratch scratch = {.chunks = {.n = 0}};
    struct log_entry *entry = entry_new(job, 0, &scratch);
    cr_assert_not_null(entry);
    size_t n = entry_bytes(entry);
    entry_release(entry);
    entry_scratch_release(&scratch);
    return n;
}

/* The chunk of a request with a key is not packed, and its answer is kept for the record. */
Test(entry, a_request_with_a_key_takes_its_chunk_and_its_answer)
{
    struct request_key key = {.answer = {bytes, ANSWER}};
    struct storage_job job = {.chunk = {bytes, CHUNK}, .u.write = {.n = 1, .keyed = &key}};
    size_t n = bytes_of(&job);
    cr_expect_geq(n, (size_t)CHUNK + ANSWER);
    cr_expect_lt(n, (size_t)CHUNK + ANSWER + 1000);
}

Test(entry, a_request_without_a_key_takes_what_is_left_when_it_is_packed)
{
    struct storage_job job = {.chunk = {bytes, CHUNK}, .u.write = {.n = 1}};
    cr_expect_lt(bytes_of(&job), 2000u, "zeros take little");
    uint64_t noise = 1;
    for (size_t i = 0; i < CHUNK; i++) {
        noise = noise * UINT64_C(6364136223846793005) + 1;
        bytes[i] = (char)(noise >> 56);
    }
    size_t n = bytes_of(&job);
    cr_expect_geq(n, (size_t)CHUNK);
    cr_expect_lt(n, (size_t)CHUNK + 1000, "%zu", n);
}

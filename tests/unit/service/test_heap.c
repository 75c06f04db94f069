#include "service/heap.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sanitizer has an allocator of its own. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* What was freed between blocks that live on goes back to the system. */
TestSuite(heap, .timeout = 60);

#define BLOCKS     8192
#define BLOCK_SIZE 2048
#define LIVES      64 /* every so many */

static void *blocks[BLOCKS];

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%*d %ld", &pages), 1);
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* 16 MiB, of which little stays. */
static void make_holes(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_SIZE);
        cr_assert_not_null(blocks[i]);
        memset(blocks[i], 1, BLOCK_SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % LIVES != LIVES - 1) {
            free(blocks[i]);
        }
    }
}

Test(heap, holes_are_given_back)
{
    struct heap heap = {0};
    heap_set_up();
    make_holes();
    long before = resident_kib();
    int64_t next_ms = heap_tick(&heap, 1000);
    cr_expect_lt(resident_kib(), before - 8 * 1024, "%ld of %ld KiB", resident_kib(), before);
    cr_expect_eq(next_ms, 2000);
    make_holes();
    before = resident_kib();
    cr_expect_eq(heap_tick(&heap, 1999), 2000, "it is not due");
    cr_expect_geq(resident_kib(), before - 64);
}

Test(heap, what_was_large_goes_at_once)
{
    heap_set_up();
    for (int i = 0; i < 3; i++) {
        blocks[0] = malloc(16 << 20);
        cr_assert_not_null(blocks[0]);
        memset(blocks[0], 1, 16 << 20);
        long before = resident_kib();
        free(blocks[0]);
        cr_expect_lt(resident_kib(), before - 15 * 1024);
    }
}
#endif

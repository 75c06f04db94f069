#include "service/heap.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* A block of at least so many bytes has pages of its own.  glibc begins with 128 KiB, and the value
 * grows with the largest block that was freed, up to 32 MiB.  Pages that are given back cost all
 * threads a look at their tables: with 128 KiB an import cost 16 us of tallyd an event, with 256
 * KiB 13 us, with 1 MiB 11 us.  Beside arrays of events the peak was 35, 37 and 39 MiB. */
#define LARGE_BLOCK (256 * 1024)

/* So many bytes at the end of the heap are kept for their next use. */
#define TRIM_AT (2 * LARGE_BLOCK)

/* By default each thread gets an arena, and each arena keeps the most that it ever needed. */
#define ARENAS 2

#define TICK_MS 1000

/* Fewer bytes are not worth the walk over all arenas, nor the page faults when they are needed. */
#define HOLES_MIN ((size_t)1024 * 1024)

void heap_set_up(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    (void)mallopt(M_ARENA_MAX, ARENAS);
    (void)mallopt(M_TRIM_THRESHOLD, TRIM_AT);
#endif
}

int64_t heap_tick(struct heap *heap, int64_t now_ms)
{
    if (now_ms < heap->next_ms) {
        return heap->next_ms;
    }
    heap->next_ms = now_ms + TICK_MS;
#ifdef __GLIBC__
    size_t holes = mallinfo2().fordblks; /* holes that were given back are among them */
    size_t changed = holes > heap->holes ? holes - heap->holes : heap->holes - holes;
    if (holes >= HOLES_MIN && changed >= HOLES_MIN / 4) {
        (void)malloc_trim(0);
        heap->holes = holes;
    }
#endif
    return heap->next_ms;
}

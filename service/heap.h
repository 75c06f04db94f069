/* heap.h - give freed memory back to the system.
 *
 * Layer: service.  Thread-safe; a struct heap has one owner.
 *
 * glibc keeps freed memory for later, and how much that becomes depends on the order of
 * allocations.  A burst of arrays leaves some 9 MiB of holes between the few blocks that live on.
 * So large blocks go back at once, threads share two arenas, and holes are given back when they
 * have become many.
 */
#ifndef SERVICE_HEAP_H
#define SERVICE_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed: nothing was given back yet. */
struct heap {
    int64_t next_ms; /* when holes are looked at next, CLOCK_MONOTONIC */
    size_t holes;    /* bytes, when holes were last given back */
};

/* Set the allocator up.  Call this before other threads are started, and before much is
 * allocated. */
void heap_set_up(void);

/* Give holes back, if that is due by @now_ms (CLOCK_MONOTONIC).  Returns when to call again, ms. */
int64_t heap_tick(struct heap *heap, int64_t now_ms);

#endif

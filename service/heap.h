/* heap.h - what was freed goes back to the system.
 *
 * Layer: service.  Thread-safe; a struct heap has one owner.
 *
 * glibc keeps what is freed for later, and how much that becomes depends on the order of things.  A
 * burst of arrays leaves some 9 MiB of holes between the few blocks that live on.  So large blocks
 * go back at once, threads share two arenas, and the holes are given back where many came up.
 */
#ifndef SERVICE_HEAP_H
#define SERVICE_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed: nothing was given back yet. */
struct heap {
    int64_t next_ms;
    size_t holes; /* bytes, when holes were last given back */
};

/* Before there are other threads, and before much is allocated. */
void heap_set_up(void);

/* Give holes back, if that is due by @now_ms (CLOCK_MONOTONIC).  Returns when to call again. */
int64_t heap_tick(struct heap *heap, int64_t now_ms);

#endif

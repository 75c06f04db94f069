/* arena.h - many small allocations that are freed together.
 *
 * Layer: storage, pure.  One owner.
 */
#ifndef STORAGE_BASE_ARENA_H
#define STORAGE_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used, capacity;      /* of the newest */
};

/* A zeroed arena is empty.  Returns memory aligned for any object, or NULL. */
void *arena_alloc(struct arena *arena, size_t n);
/* Forget everything; one block of a modest size is kept for reuse. */
void arena_clear(struct arena *arena);
void arena_release(struct arena *arena);

#endif

/* arena.h - many small allocations that are freed together.
 *
 * Layer: storage, pure.  Not thread-safe: an arena has one owner.
 *
 * An arena hands out pieces of blocks, one behind the other.  The first block is small, and the
 * others are large.  A piece cannot be freed alone; all pieces are freed at once.  The replies of
 * Redis and the results of a question live in arenas.
 */
#ifndef STORAGE_BASE_ARENA_H
#define STORAGE_BASE_ARENA_H

#include <stddef.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

struct arena_block;

/* A zeroed arena is empty and owns nothing. */
struct arena {
    struct arena_block *blocks; /* owned; newest first */
    size_t used, capacity;      /* bytes of the newest block */
};

/* Return @n bytes, not initialised and aligned for any object.  The arena owns them.  NULL: out of
 * memory; the pieces handed out before stay valid. */
void *arena_alloc(struct arena *arena, size_t n) MUST_CHECK;

/* Have @slice point to a copy of its bytes, which the arena owns.  False: out of memory, and @slice
 * is untouched. */
bool arena_copy(struct arena *arena, struct slice *slice) MUST_CHECK;

/* End the life of all pieces.  The arena keeps one block of 16 KiB, if it has one, for its next
 * use. */
void arena_clear(struct arena *arena);

/* End the life of all pieces and free all blocks.  The arena is empty and can be used again. */
void arena_release(struct arena *arena);

#endif

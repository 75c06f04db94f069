#include "storage/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 16384
/* The first block of an arena: most arenas of a single event need no more.  With the block's head
 * it is 1 KiB, which malloc() has at hand in the thread's own cache (glibc's tcache). */
#define FIRST_SIZE (1024 - sizeof(struct arena_block))

struct arena_block {
    struct arena_block *next;
    size_t capacity;
    max_align_t bytes[];
};

void *arena_alloc(struct arena *arena, size_t n)
{
    size_t align = sizeof(max_align_t);
    if (n > SIZE_MAX / 2) {
        return NULL;
    }
    n = (n + align - 1) / align * align;
    if (arena->blocks == NULL || arena->capacity - arena->used < n) {
        size_t usual = arena->blocks == NULL && n <= FIRST_SIZE ? FIRST_SIZE : BLOCK_SIZE;
        size_t capacity = n > usual ? n : usual;
        struct arena_block *block = malloc(sizeof(*block) + capacity);
        if (block == NULL) {
            return NULL;
        }
        block->next = arena->blocks;
        block->capacity = capacity;
        arena->blocks = block;
        arena->capacity = capacity;
        arena->used = 0;
    }
    void *p = (char *)arena->blocks->bytes + arena->used;
    arena->used += n;
    return p;
}

bool arena_copy(struct arena *arena, struct slice *slice)
{
    char *copy = arena_alloc(arena, slice->n + 1);
    if (copy == NULL) {
        return false;
    }
    if (slice->n > 0) {
        memcpy(copy, slice->p, slice->n);
    }
    slice->p = copy;
    return true;
}

void arena_clear(struct arena *arena)
{
    struct arena_block *kept = NULL;
    struct arena_block *next;
    for (struct arena_block *block = arena->blocks; block != NULL; block = next) {
        next = block->next;
        if (kept == NULL && block->capacity == BLOCK_SIZE) {
            kept = block;
            kept->next = NULL;
        } else {
            free(block);
        }
    }
    arena->blocks = kept;
    arena->capacity = kept == NULL ? 0 : kept->capacity;
    arena->used = 0;
}

void arena_release(struct arena *arena)
{
    arena_clear(arena);
    free(arena->blocks);
    *arena = (struct arena){0};
}

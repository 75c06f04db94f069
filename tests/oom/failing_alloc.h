/* failing_alloc.h - an allocator that fails where it is told to, and knows what was not freed.
 *
 * The program is linked with --wrap for malloc and its kin (see the Makefile), so all of our own
 * objects allocate through here, and jansson does through json_memory.c.  Thread-safe.
 */
#ifndef TESTS_OOM_FAILING_ALLOC_H
#define TESTS_OOM_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* The @nth allocation (from 1) from now on fails, and @more behind it. */
void alloc_fail(unsigned long nth, unsigned long more);

/* Fail none any more.  True if one has failed since. */
bool alloc_stop(void);

/* From now on blocks are watched; those of before are not. */
void alloc_watch(void);

/* How many blocks that were allocated since are not freed; the number and size of the first. */
size_t alloc_left(unsigned long *ret_number, size_t *ret_size);

/* @p now belongs to a library, which frees it without us. */
void alloc_handed_over(const void *p);

#endif

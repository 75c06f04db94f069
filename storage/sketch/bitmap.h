/* bitmap.h - sets of users as bits.
 *
 * Layer: storage, pure.  Thread-safe.
 * The order of bits is Redis's: bit i is in byte i / 8, the greatest bit of a byte comes first.
 * Bitmaps here are whole words, so that a loop over them needs no end game; bytes that are missing
 * in a string are zeros.
 */
#ifndef STORAGE_SKETCH_BITMAP_H
#define STORAGE_SKETCH_BITMAP_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

/* @words |= @bytes, @words &= @bytes; of the bytes at most 8 * @n count. */
void bitmap_or(uint64_t *words, size_t n, struct slice bytes);
void bitmap_and(uint64_t *words, size_t n, struct slice bytes);

/* How many bits are set in both; @a and @b may be the same. */
uint64_t bitmap_count_both(const uint64_t *a, const uint64_t *b, size_t n);

/* The first bit that is set at @from or behind it; 64 * @n if there is none. */
uint64_t bitmap_next(const uint64_t *words, size_t n, uint64_t from);

#endif

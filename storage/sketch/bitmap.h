/* bitmap.h - sets of users as bits: union, intersection, count.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * Every user has a number.  A set of users is a string of bits in Redis, in which the bit of each
 * member is 1.  Here a set is an array of 64-bit words with the same bytes, so bit i lies in byte
 * i / 8, and the greatest bit of a byte comes first.  Whole words make the loops simple.  Bytes
 * that a string lacks are zeros.
 */
#ifndef STORAGE_SKETCH_BITMAP_H
#define STORAGE_SKETCH_BITMAP_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

/* @words |= @bytes, and @words &= @bytes.  There are @n words; of the bytes, the first 8 * @n
 * count. */
void bitmap_or(uint64_t *words, size_t n, struct slice bytes);
void bitmap_and(uint64_t *words, size_t n, struct slice bytes);

/* How many bits are set in both @a and @b, which have @n words each and may be the same array. */
uint64_t bitmap_count_both(const uint64_t *a, const uint64_t *b, size_t n);

/* The number of the first bit that is set at @from or behind it; 64 * @n if there is none. */
uint64_t bitmap_next(const uint64_t *words, size_t n, uint64_t from);

#endif

/* hll.h - how many different elements a set has, estimated from 16,384 small registers.
 *
 * Layer: storage, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 * A HyperLogLog sketch holds the number of different visitors of a page in 12 KB at most, whatever
 * their number, with a standard error of 0.81 %.  Sketches of several hours can be united into one.
 * Redis keeps the sketches.  Redis could unite and estimate them too (PFCOUNT), but serves nobody
 * else meanwhile.  So tallyd reads the strings and does here exactly what Redis would do.
 *
 * The strings are not trusted: each run in them is checked before the first register is written.
 * The encoding, the estimator and the papers are described at the top of hll.c.
 */
#ifndef STORAGE_SKETCH_HLL_H
#define STORAGE_SKETCH_HLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/sketch/hll_simd.h"

#define HLL_DENSE_SIZE 12304 /* bytes of a dense Redis string: header and 6-bit registers */

/* A sketch.  A register is a byte of 0..63.  All registers 0 is the empty set. */
struct hll {
    uint8_t registers[HLL_REGISTERS];
};

/* To which register an element goes, and how high the element would raise it. */
struct hll_place {
    uint16_t index;
    uint8_t count;
};

/* The place of an element of @n bytes, as PFADD finds it. */
struct hll_place hll_place_of(const void *element, size_t n);

/* Make @hll the empty set. */
void hll_clear(struct hll *hll);

/* Unite @hll with a HyperLogLog string of Redis, dense or sparse: each register becomes the greater
 * one of both.  False, with @hll untouched: Redis would not accept the string, such as an empty one
 * (@n 0, @string may be NULL).  The cardinality cached in the string is never used. */
bool hll_merge(struct hll *hll, const void *string, size_t n) MUST_CHECK;

/* Unite @hll with @other: each register becomes the greater one of both. */
void hll_unite(struct hll *hll, const struct hll *other);

/* Write @hll as a string that Redis takes, with the cached cardinality marked stale.  The string is
 * sparse where a sparse one is below 3000 bytes, which is Redis's default, and else dense.  Redis
 * may encode the same registers by other bytes.  @ret has HLL_DENSE_SIZE bytes; returns how many
 * are used. */
size_t hll_encode(const struct hll *hll, uint8_t *ret);

/* The same for a sketch of @n elements, HLL_FEW at most, by the places to which they go.  @places
 * are sorted.  Returns how many of HLL_FEW_SIZE bytes of @ret are used; 0: an element's count is
 * too high for a sparse string, as one of four thousand million is. */
#define HLL_FEW      64
#define HLL_FEW_SIZE (16 + 3 * HLL_FEW + 2)
size_t hll_encode_few(struct hll_place *places, size_t n, uint8_t *ret);

/* The estimate that PFCOUNT gives for the same registers, bit for bit.  Forged registers can make
 * it any number up to 2^63. */
uint64_t hll_estimate(const struct hll *hll);

#endif

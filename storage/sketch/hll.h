/* hll.h - Redis's HyperLogLog, read, merged and estimated outside of Redis.
 *
 * Layer: storage, pure (no I/O, no clock, no allocation).  Thread-safe.
 *
 * PFCOUNT over many keys keeps Redis from everybody else; a GET of them and a merge here does not.
 * The strings are untrusted: every run is bounds-checked before the first register is written.
 * The encoding, the estimator and the papers are described at the top of hll.c.
 */
#ifndef STORAGE_SKETCH_HLL_H
#define STORAGE_SKETCH_HLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/sketch/hll_simd.h"

#define HLL_DENSE_SIZE 12304 /* bytes of a dense Redis string: header and 6-bit registers */

/* One owner at a time.  The registers are 0..63, a byte each; all 0 is the empty set. */
struct hll {
    uint8_t registers[HLL_REGISTERS];
};

/* Make @hll the empty set. */
void hll_clear(struct hll *hll);

/* Take the maximum of @hll and of a Redis HyperLogLog string, dense or sparse, register by
 * register.  False, and @hll untouched, if the string is not one that Redis would accept (NULL with
 * @n 0 is not).  The cardinality cached in the string is never used. */
bool hll_merge(struct hll *hll, const void *string, size_t n);

/* Take the maximum of @hll and @other, register by register: the union. */
void hll_unite(struct hll *hll, const struct hll *other);

/* The string of @hll, as Redis would take it, with the cached cardinality marked stale: the sparse
 * one where that is below 3000 bytes, as in Redis by default (not always the bytes that Redis would
 * write).  @ret has HLL_DENSE_SIZE bytes; returns how many are used. */
size_t hll_encode(const struct hll *hll, uint8_t *ret);

/* The estimate PFCOUNT gives for the same registers, bit for bit.  Forged registers can make it any
 * number up to 2^63. */
uint64_t hll_estimate(const struct hll *hll);

#endif

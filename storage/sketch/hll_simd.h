/* hll_simd.h - the loops over all registers of a sketch, in the widest vectors the processor has.
 *
 * Layer: storage, private to hll.c (and its tests), pure.  Thread-safe.
 *
 * All kernels give the same registers and counts to the last bit; they differ in time only.  The
 * scalar one is the definition.
 */
#ifndef STORAGE_SKETCH_HLL_SIMD_H
#define STORAGE_SKETCH_HLL_SIMD_H

#include <stddef.h>
#include <stdint.h>

#define HLL_REGISTERS 16384
#define HLL_VALUES    64 /* of a register: 0..63 */

struct hll_kernel {
    const char *name;
    /* registers[i] = max(registers[i], i-th of the 16384 six-bit fields at @packed), for 12288
     * bytes at @packed.  Four bytes before @packed may be read (the end of Redis's header), none
     * behind. */
    void (*merge_packed)(uint8_t *registers, const uint8_t *packed);
    /* registers[i] = max(registers[i], others[i]) */
    void (*merge)(uint8_t *registers, const uint8_t *others);
    /* How many registers hold each value; they must be below HLL_VALUES. */
    void (*count_values)(const uint8_t *registers, uint32_t counts[HLL_VALUES]);
};

/* The fastest this processor can run; @without of them left out (tests ask for 0, 1, 2, .. until
 * NULL comes; the scalar one is the last). */
const struct hll_kernel *hll_kernel(size_t without);

#endif

/* hll_simd.h - the loops over all registers of a sketch, in the widest vectors the processor has.
 *
 * Layer: storage, private to hll.c and its tests, pure.  Thread-safe.
 *
 * A sketch (hll.h) has 16,384 registers.  Uniting and counting them is most of the work of an
 * answer, so there are several versions of these loops, called kernels.  All kernels give the same
 * registers and counts to the last bit; they differ in time only.  The scalar one is the
 * definition.
 */
#ifndef STORAGE_SKETCH_HLL_SIMD_H
#define STORAGE_SKETCH_HLL_SIMD_H

#include <stddef.h>
#include <stdint.h>

#define HLL_REGISTERS 16384
#define HLL_VALUES    64 /* of a register: 0..63 */

struct hll_kernel {
    const char *name;
    /* registers[i] = max(registers[i], i-th of the 16384 six-bit fields at @packed).  @packed has
     * 12288 bytes.  The four bytes before @packed may be read (they end Redis's header), none
     * behind. */
    void (*merge_packed)(uint8_t *registers, const uint8_t *packed);
    /* registers[i] = max(registers[i], others[i]) */
    void (*merge)(uint8_t *registers, const uint8_t *others);
    /* counts[v] = how many registers hold v.  The registers must be below HLL_VALUES. */
    void (*count_values)(const uint8_t *registers, uint32_t counts[HLL_VALUES]);
};

/* The fastest kernel that this processor can run, with the @without fastest ones left out; static.
 * NULL: none is left.  Tests ask for 0, 1, 2 and so on; the scalar kernel comes last. */
const struct hll_kernel *hll_kernel(size_t without);

#endif

/* hll_simd.c - merging and counting registers: scalar, SSSE3 and AVX2.
 *
 * Unpacking.  Three bytes hold four six-bit registers, from the lowest bit upwards:
 *
 *     bbaaaaaa ccccbbbb ddddddcc
 *
 * A byte shuffle puts each such triple into two 16-bit words, b0 b1 and b1 b2 (b1 twice), so that
 * no register lies across two words:
 *
 *     ccccbbbbbbaaaaaa   even: a where it should be, b two bits too low
 *     ddddddccccccbbbb   odd: c and d, all four bits further up
 *
 * Odd words are shifted down by four.  Then all words have one register in bits 0..5 and one in
 * bits 6..11, which two masks and a shift spread over two bytes.
 *
 * Counting.  An increment of a counter in memory has to wait for the last increment of the same
 * counter, and most registers hold one of a dozen values.  So vectors count value by value, from
 * the least to the greatest there is, four values a pass.  A comparison gives -1 in each lane that
 * is equal, and this is subtracted from a byte counter.  Before a lane can overflow all lanes are
 * added up.
 */
#include "storage/sketch/hll_simd.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

/* ---- scalar ---- */

static inline uint64_t load_le64(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return le64toh(word);
}

static inline void store_le64(uint8_t *p, uint64_t word)
{
    word = htole64(word);
    memcpy(p, &word, sizeof(word));
}

/* Spread the 8 six-bit fields in the low 48 bits of @packed to 8 bytes, the first field in the
 * lowest byte, by halves:
 *
 *     hhhhhhggggggffffffeeeeeeddddddccccccbbbbbbaaaaaa   48 bits
 *     ........hhhhhhggggggffffffeeeeee........ddddddccccccbbbbbbaaaaaa   2 x 24 in 32
 *     ....hhhhhhgggggg....ffffffeeeeee....ddddddcccccc....bbbbbbaaaaaa   4 x 12 in 16
 *     ..hhhhhh..gggggg..ffffff..eeeeee..dddddd..cccccc..bbbbbb..aaaaaa   8 x 6 in 8
 */
static inline uint64_t spread_fields(uint64_t packed)
{
    packed = (packed & 0x0000000000ffffff) | (packed & 0x0000ffffff000000) << 8;
    packed = (packed & 0x00000fff00000fff) | (packed & 0x00fff00000fff000) << 4;
    return (packed & 0x003f003f003f003f) | (packed & 0x0fc00fc00fc00fc0) << 2;
}

/* Unpack the 8 registers in the 6 bytes at @packed.  A word has 8 bytes.  The two that are too many
 * are taken from before @packed, where there is always a header or other registers.  Behind the
 * last register the memory may end. */
static inline void unpack_8(uint8_t *registers, const uint8_t *packed)
{
    store_le64(registers, spread_fields(load_le64(packed - 2) >> 16));
}

static void merge_scalar(uint8_t *registers, const uint8_t *others)
{
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        registers[i] = registers[i] > others[i] ? registers[i] : others[i];
    }
}

/* Unpacking goes through a small array, so that the maximum is a loop of constant length over
 * bytes.  Every compiler turns such a loop into vector instructions at -O2.  With 64 registers the
 * vector loads are far enough from the stores of the words not to wait for them. */
#define BATCH 64

static void merge_packed_scalar(uint8_t *registers, const uint8_t *packed)
{
    for (uint8_t *reg = registers; reg < registers + HLL_REGISTERS; reg += BATCH) {
        uint8_t batch[BATCH];
        for (size_t i = 0; i < BATCH / 8; i++) {
            unpack_8(batch + 8 * i, packed + 6 * i);
        }
        for (size_t i = 0; i < BATCH; i++) {
            reg[i] = reg[i] > batch[i] ? reg[i] : batch[i];
        }
        packed += BATCH * 6 / 8;
    }
}

/* Neighbouring registers are often equal.  With four sets of counters an increment need not wait
 * for the one before. */
static void count_values_scalar(const uint8_t *registers, uint32_t counts[HLL_VALUES])
{
    uint32_t parts[4][HLL_VALUES] = {{0}};
    for (size_t i = 0; i < HLL_REGISTERS; i += 4) {
        parts[0][registers[i] % HLL_VALUES]++;
        parts[1][registers[i + 1] % HLL_VALUES]++;
        parts[2][registers[i + 2] % HLL_VALUES]++;
        parts[3][registers[i + 3] % HLL_VALUES]++;
    }
    for (size_t v = 0; v < HLL_VALUES; v++) {
        counts[v] = parts[0][v] + parts[1][v] + parts[2][v] + parts[3][v];
    }
}

static const struct hll_kernel scalar = {
    "scalar", merge_packed_scalar, merge_scalar, count_values_scalar};

#if defined(__x86_64__)

#include <immintrin.h>

/* ---- SSSE3: 16 registers at a time ---- */

#define SSSE3 __attribute__((target("ssse3")))

/* Unpack the last 12 of 16 bytes.  The first 4 lie before the registers. */
SSSE3 static inline __m128i unpack_128(__m128i bytes)
{
    const __m128i triples = _mm_setr_epi8(4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15);
    const __m128i odd = _mm_set1_epi32((int)0xffff0000);
    __m128i words = _mm_shuffle_epi8(bytes, triples);
    words =
        _mm_or_si128(_mm_andnot_si128(odd, words), _mm_and_si128(odd, _mm_srli_epi16(words, 4)));
    return _mm_or_si128(_mm_and_si128(words, _mm_set1_epi16(0x003f)),
        _mm_and_si128(_mm_slli_epi16(words, 2), _mm_set1_epi16(0x3f00)));
}

SSSE3 static void merge_packed_ssse3(uint8_t *registers, const uint8_t *packed)
{
    for (size_t i = 0; i < HLL_REGISTERS; i += 16, packed += 12) {
        __m128i *at = (__m128i *)(void *)(registers + i);
        __m128i theirs = unpack_128(_mm_loadu_si128((const __m128i *)(const void *)(packed - 4)));
        _mm_storeu_si128(at, _mm_max_epu8(_mm_loadu_si128(at), theirs));
    }
}

SSSE3 static void merge_ssse3(uint8_t *registers, const uint8_t *others)
{
    for (size_t i = 0; i < HLL_REGISTERS; i += 16) {
        __m128i *at = (__m128i *)(void *)(registers + i);
        __m128i theirs = _mm_loadu_si128((const __m128i *)(const void *)(others + i));
        _mm_storeu_si128(at, _mm_max_epu8(_mm_loadu_si128(at), theirs));
    }
}

static const struct hll_kernel ssse3 = {
    "SSSE3", merge_packed_ssse3, merge_ssse3, count_values_scalar};

/* ---- AVX2: 32 registers at a time; shuffles stay within 16 bytes ---- */

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i unpack_256(__m256i bytes)
{
    const __m256i triples = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15));
    __m256i words = _mm256_shuffle_epi8(bytes, triples);
    words = _mm256_blend_epi16(words, _mm256_srli_epi16(words, 4), 0xaa);
    return _mm256_or_si256(_mm256_and_si256(words, _mm256_set1_epi16(0x003f)),
        _mm256_and_si256(_mm256_slli_epi16(words, 2), _mm256_set1_epi16(0x3f00)));
}

AVX2 static void merge_packed_avx2(uint8_t *registers, const uint8_t *packed)
{
    for (size_t i = 0; i < HLL_REGISTERS; i += 32, packed += 24) {
        __m256i *at = (__m256i *)(void *)(registers + i);
        __m256i bytes =
            _mm256_loadu2_m128i((const __m128i *)(const void *)(packed + 8), /* the upper half */
                (const __m128i *)(const void *)(packed - 4));
        _mm256_storeu_si256(at, _mm256_max_epu8(_mm256_loadu_si256(at), unpack_256(bytes)));
    }
}

AVX2 static void merge_avx2(uint8_t *registers, const uint8_t *others)
{
    for (size_t i = 0; i < HLL_REGISTERS; i += 32) {
        __m256i *at = (__m256i *)(void *)(registers + i);
        __m256i theirs = _mm256_loadu_si256((const __m256i *)(const void *)(others + i));
        _mm256_storeu_si256(at, _mm256_max_epu8(_mm256_loadu_si256(at), theirs));
    }
}

/* A lane of a byte counter takes this many decrements. */
#define LANE_FULL     255
#define VALUES_A_PASS 4

AVX2 static inline uint32_t sum_256(__m256i lanes)
{
    __m256i quarters = _mm256_sad_epu8(lanes, _mm256_setzero_si256());
    __m128i halves =
        _mm_add_epi64(_mm256_castsi256_si128(quarters), _mm256_extracti128_si256(quarters, 1));
    return (uint32_t)_mm_cvtsi128_si32(halves) +
           (uint32_t)_mm_cvtsi128_si32(_mm_srli_si128(halves, 8));
}

/* Count 4 values from @first on in @n vectors, at most LANE_FULL. */
AVX2 static void count_four_avx2(
    const uint8_t *registers, size_t n, size_t first, uint32_t counts[HLL_VALUES])
{
    const __m256i value0 = _mm256_set1_epi8((char)first);
    const __m256i value1 = _mm256_set1_epi8((char)(first + 1));
    const __m256i value2 = _mm256_set1_epi8((char)(first + 2));
    const __m256i value3 = _mm256_set1_epi8((char)(first + 3));
    __m256i n0 = _mm256_setzero_si256();
    __m256i n1 = n0;
    __m256i n2 = n0;
    __m256i n3 = n0;
    for (size_t i = 0; i < n; i++) {
        __m256i reg = _mm256_loadu_si256((const __m256i *)(const void *)(registers + 32 * i));
        n0 = _mm256_sub_epi8(n0, _mm256_cmpeq_epi8(reg, value0));
        n1 = _mm256_sub_epi8(n1, _mm256_cmpeq_epi8(reg, value1));
        n2 = _mm256_sub_epi8(n2, _mm256_cmpeq_epi8(reg, value2));
        n3 = _mm256_sub_epi8(n3, _mm256_cmpeq_epi8(reg, value3));
    }
    counts[first] += sum_256(n0);
    counts[first + 1] += sum_256(n1);
    counts[first + 2] += sum_256(n2);
    counts[first + 3] += sum_256(n3);
}

AVX2 static void bounds_avx2(const uint8_t *registers, size_t *ret_least, size_t *ret_greatest)
{
    __m256i least = _mm256_set1_epi8(HLL_VALUES - 1);
    __m256i greatest = _mm256_setzero_si256();
    for (size_t i = 0; i < HLL_REGISTERS; i += 32) {
        __m256i reg = _mm256_loadu_si256((const __m256i *)(const void *)(registers + i));
        least = _mm256_min_epu8(least, reg);
        greatest = _mm256_max_epu8(greatest, reg);
    }
    uint8_t bytes[2][32];
    _mm256_storeu_si256((__m256i *)(void *)bytes[0], least);
    _mm256_storeu_si256((__m256i *)(void *)bytes[1], greatest);
    *ret_least = bytes[0][0];
    *ret_greatest = bytes[1][0];
    for (size_t i = 1; i < 32; i++) {
        *ret_least = bytes[0][i] < *ret_least ? bytes[0][i] : *ret_least;
        *ret_greatest = bytes[1][i] > *ret_greatest ? bytes[1][i] : *ret_greatest;
    }
}

AVX2 static void count_values_avx2(const uint8_t *registers, uint32_t counts[HLL_VALUES])
{
    const size_t vectors = HLL_REGISTERS / 32;
    size_t least = 0;
    size_t greatest = 0;
    memset(counts, 0, HLL_VALUES * sizeof(*counts));
    bounds_avx2(registers, &least, &greatest);
    for (size_t v = least / VALUES_A_PASS * VALUES_A_PASS; v <= greatest; v += VALUES_A_PASS) {
        for (size_t i = 0; i < vectors; i += LANE_FULL) {
            size_t n = vectors - i < LANE_FULL ? vectors - i : LANE_FULL;
            count_four_avx2(registers + 32 * i, n, v, counts);
        }
    }
}

static const struct hll_kernel avx2 = {"AVX2", merge_packed_avx2, merge_avx2, count_values_avx2};

#endif

const struct hll_kernel *hll_kernel(size_t without)
{
    const struct hll_kernel *found[3] = {NULL};
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        found[n++] = &avx2;
    }
    if (__builtin_cpu_supports("ssse3")) {
        found[n++] = &ssse3;
    }
#endif
    found[n++] = &scalar;
    return without < n ? found[without] : NULL;
}

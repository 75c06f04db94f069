/* hll.c - Redis's HyperLogLog, read, merged and estimated outside of Redis.
 *
 * Why here: PFCOUNT over the hours of a month unpacks and merges every key inside the one thread
 * that serves all other clients.  A GET of the same keys costs that thread little more than the
 * copy.  The merge then runs on our core, and comes to the same registers and the same number.
 *
 *
 * Papers
 * ------
 * [1] P. Flajolet, E. Fusy, O. Gandouet, F. Meunier: "HyperLogLog: the analysis of a near-optimal
 *     cardinality estimation algorithm", AofA 2007.  The registers, and what they can tell.
 *
 * [2] S. Heule, M. Nunkesser, A. Hall: "HyperLogLog in practice: algorithmic engineering of a
 *     state of the art cardinality estimation algorithm", EDBT 2013.  The 64-bit hash, which needs
 *     no correction for collisions, and the idea of a sparse form for small sets.
 *
 * [3] O. Ertl: "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
 *     arXiv:1702.01284.  The estimator in use: the improved raw one, which needs no table of biases
 *     and no switch to linear counting.
 *
 *
 * The sketch
 * ----------
 * An element is hashed to 64 bits.  The low P = 14 bits choose one of 16384 registers, the other
 * Q = 50 bits are a fair coin thrown 50 times:
 *
 *      63                                              14 13             0
 *     +--------------------------------------------------+----------------+
 *     |                    50 coin bits                  | register index |
 *     +--------------------------------------------------+----------------+
 *                                             <-- count
 *
 * "count" is the number of zeros from bit 14 upwards plus one: 1..50, or 51 when all 50 are zero.
 * A register keeps the highest count it has seen.  So the order and the repetition of elements do
 * not matter, and the union of two sets is the maximum of their registers.  P = 14 gives a standard
 * error of 1.04 / sqrt(16384) = 0.81 %.
 *
 *
 * The string
 * ----------
 * Redis stores a sketch in an ordinary string:
 *
 *     +------+-----+-----+----------+-----------------------------+
 *     | HYLL | enc | --- | card LE  | registers, dense or sparse  |
 *     +------+-----+-----+----------+-----------------------------+
 *      0      4     5     8          16
 *
 * "enc" is 0 for dense, 1 for sparse.  The three bytes behind it are unused, and Redis does not
 * check them.  "card" is the cached estimate, stale if the top bit of byte 15 is set.  It is
 * skipped here: it is of no use for a union, and a client that may SET the key may write any number
 * there.
 *
 * Dense: 16384 registers of 6 bits, from the lowest bit of the first byte upwards, 12288 bytes:
 *
 *     byte          0         1         2         3
 *     bit       76543210  76543210  76543210  76543210
 *     register  11000000  22221111  33333322  55444444   ...
 *
 * Sparse: a list of runs that together cover the registers 0..16383 exactly.  Most registers of a
 * small set are zeros, so there are two kinds of runs for zeros:
 *
 *     ZERO   00xxxxxx             x + 1 registers of 0        1..64
 *     XZERO  01xxxxxx yyyyyyyy    (x << 8 | y) + 1 of 0       1..16384
 *     VAL    1vvvvvxx             x + 1 registers of v + 1    1..4 registers of 1..32
 *
 * The empty sketch is XZERO 16384, 7f ff, 18 bytes with its header.  The elements a, b, c make 27
 * bytes:
 *
 *     48594c4c 01 000000 0000000000000080    "HYLL", sparse, unused, stale
 *     60f3 80  50b1 84  4bfb 80  425a        8436 zeros, 1; 4274 zeros, 2; 3068 zeros, 1; 603 zeros
 *
 *
 * Hostile strings
 * ---------------
 * Redis sums the runs in an int, and once did not check ZERO and XZERO.  Enough of them wrap the
 * sum to below zero, and the next VAL writes in front of the registers (CVE-2025-32023).  Here a
 * run that would pass register 16383 is refused where it stands, so a sum never gets beyond 16384.
 * A sparse string is walked once in full before a second walk writes anything.
 *
 * One kind of string is refused although Redis takes it: a last XZERO without its second byte.
 * Redis reads there the NUL that it keeps behind each string.  Redis does not write such strings.
 *
 * A dense register can hold 52..63, which no hash yields.  Redis does not count such registers, and
 * they are not counted here.
 */
#include "storage/sketch/hll.h"

#include <math.h>
#include <string.h>

#include "storage/sketch/bloom.h"
#include "storage/sketch/hll_simd.h"

#define P 14
#define Q 50 /* 64 - P */

#define HEADER_SIZE   16
#define MAGIC         "HYLL"
#define MAGIC_SIZE    4
#define ENCODING_BYTE 4

enum encoding {
    ENCODING_DENSE = 0,
    ENCODING_SPARSE = 1,
};

/* 1 / (2 ln 2), the limit of [1]'s alpha for many registers. */
#define ALPHA_INF 0.721347520444481703680

_Static_assert(HLL_REGISTERS == 1 << P, "the low P bits of a hash choose the register");
_Static_assert(HLL_DENSE_SIZE == HEADER_SIZE + HLL_REGISTERS * 6 / 8, "six bits a register");

#define HASH_SEED UINT64_C(0xadc83b19) /* Redis's choice */

struct hll_place hll_place_of(const void *element, size_t n)
{
    uint64_t hash = murmur_hash64a(element, n, HASH_SEED);
    uint64_t coins = hash >> P | UINT64_C(1) << Q;
    return (struct hll_place){
        (uint16_t)(hash & (HLL_REGISTERS - 1)), (uint8_t)(1 + __builtin_ctzll(coins))};
}

void hll_clear(struct hll *hll)
{
    memset(hll->registers, 0, sizeof(hll->registers));
}

/* Merging sparse registers */

struct run {
    size_t length; /* registers, 1..16384 */
    uint8_t value; /* what they hold, 0..32 */
};

/* Read the run at @p, before @end.  Returns where the next run starts; NULL: the run is cut off.
 * Inline, because otherwise gcc makes it a call, which takes three times as long. */
static inline const uint8_t *read_run(const uint8_t *p, const uint8_t *end, struct run *run)
{
    uint8_t opcode = *p++;
    if ((opcode & 0x80) != 0) { /* VAL */
        run->length = (opcode & 0x03) + 1u;
        run->value = (uint8_t)((opcode >> 2 & 0x1f) + 1);
        return p;
    }
    run->value = 0;
    if ((opcode & 0x40) != 0) { /* XZERO */
        if (p == end) {
            return NULL;
        }
        run->length = ((opcode & 0x3fu) << 8 | *p) + 1u;
        return p + 1;
    }
    run->length = opcode + 1u; /* ZERO */
    return p;
}

/* Do the runs cover all registers, and nothing else?  The bound is checked at each run and by
 * subtraction, so nothing can overflow.  No string takes more than 16384 steps. */
static bool sparse_is_valid(const uint8_t *p, const uint8_t *end)
{
    size_t covered = 0;
    while (p < end) {
        struct run run;
        p = read_run(p, end, &run);
        if (p == NULL || run.length > HLL_REGISTERS - covered) {
            return false;
        }
        covered += run.length;
    }
    return covered == HLL_REGISTERS;
}

/* Unite @hll with the runs, which sparse_is_valid() has checked. */
static void merge_sparse(struct hll *hll, const uint8_t *p, const uint8_t *end)
{
    uint8_t *reg = hll->registers;
    while (p != NULL && p < end) { /* never NULL: the runs were checked */
        struct run run = {0, 0};   /* silences gcc, which thinks of a run that is cut off */
        p = read_run(p, end, &run);
        if (run.value == 0) { /* long runs */
            reg += run.length;
            continue;
        }
        for (; run.length > 0; run.length--, reg++) {
            *reg = *reg > run.value ? *reg : run.value;
        }
    }
}

void hll_unite(struct hll *hll, const struct hll *other)
{
    hll_kernel(0)->merge(hll->registers, other->registers);
}

bool hll_merge(struct hll *hll, const void *string, size_t n)
{
    const uint8_t *bytes = string;
    if (n < HEADER_SIZE || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0) {
        return false;
    }
    switch (bytes[ENCODING_BYTE]) {
    case ENCODING_DENSE:
        if (n != HLL_DENSE_SIZE) {
            return false;
        }
        hll_kernel(0)->merge_packed(hll->registers, bytes + HEADER_SIZE);
        return true;
    case ENCODING_SPARSE:
        if (!sparse_is_valid(bytes + HEADER_SIZE, bytes + n)) {
            return false;
        }
        merge_sparse(hll, bytes + HEADER_SIZE, bytes + n);
        return true;
    default:
        return false;
    }
}

/* Estimating
 *
 * Floating-point sums depend on their order.  The three functions below keep to Redis's order of
 * operations, in double; only the final rounding is in long double.  -ffp-contract=off in the
 * Makefile keeps the compiler from fusing a multiplication with an addition.  That would round once
 * instead of twice, and the last bit would differ. */

/* [3]: sigma(x) = x + sum of x^(2^k) * 2^(k-1) over k = 1, 2, ..., for the registers still 0. */
static double hll_sigma(double x)
{
    if (x == 1.0) {
        return INFINITY;
    }
    double weight = 1;
    double sum = x;
    double before;
    do {
        x *= x;
        before = sum;
        sum += x * weight;
        weight += weight;
    } while (sum != before);
    return sum;
}

/* [3]: tau(x) = (1 - x - sum of (1 - x^(2^-k))^2 * 2^-k over k = 1, 2, ...) / 3, for the registers
 * that have run full. */
static double hll_tau(double x)
{
    if (x == 0.0 || x == 1.0) {
        return 0.0;
    }
    double weight = 1;
    double sum = 1 - x;
    double before;
    do {
        x = sqrt(x);
        before = sum;
        weight *= 0.5;
        sum -= pow(1 - x, 2) * weight;
    } while (sum != before);
    return sum / 3;
}

/* Forged registers can estimate to 2^63 and beyond, which no real set does.  The machine decides
 * what llroundl() makes of that, in Redis as here: 2^63 on x86, which PFCOUNT prints as a negative
 * number. */
uint64_t hll_estimate(const struct hll *hll)
{
    const double m = HLL_REGISTERS;
    uint32_t counts[HLL_VALUES];
    hll_kernel(0)->count_values(hll->registers, counts);
    double z = m * hll_tau((m - counts[Q + 1]) / m);
    for (size_t v = Q; v >= 1; v--) {
        z += counts[v];
        z *= 0.5;
    }
    z += m * hll_sigma(counts[0] / m);
    return (uint64_t)llroundl(ALPHA_INF * m * m / z);
}

/* ---- writing Redis's string ---- */

#define SPARSE_MAX       3000 /* hll-sparse-max-bytes, with the header */
#define SPARSE_VALUE_MAX 32
#define ZERO_MAX         64
#define VAL_MAX          4

static const uint8_t dense_header[HEADER_SIZE] = {'H', 'Y', 'L', 'L', [15] = 0x80};
static const uint8_t sparse_header[HEADER_SIZE] = {'H', 'Y', 'L', 'L', 1, [15] = 0x80};

/* Write the opcodes of @length registers of @value.  Returns how many bytes they take; 0: more than
 * @room. */
static size_t encode_run(uint8_t value, size_t length, uint8_t *ret, size_t room)
{
    size_t n = value == 0 ? (length > ZERO_MAX ? 2 : 1) : (length + VAL_MAX - 1) / VAL_MAX;
    if (n > room) {
        return 0;
    }
    if (value == 0 && length > ZERO_MAX) {
        ret[0] = (uint8_t)(0x40 | (length - 1) >> 8);
        ret[1] = (uint8_t)(length - 1);
    } else if (value == 0) {
        ret[0] = (uint8_t)(length - 1);
    } else {
        for (size_t i = 0; i < n; i++, length -= VAL_MAX) {
            size_t part = length < VAL_MAX ? length : VAL_MAX;
            ret[i] = (uint8_t)(0x80 | (value - 1) << 2 | (int)(part - 1));
        }
    }
    return n;
}

/* Returns the size of the sparse string.  0: it would not be below SPARSE_MAX, or a value is too
 * large for it. */
static size_t encode_sparse(const uint8_t *registers, uint8_t *ret)
{
    size_t n = HEADER_SIZE;
    memcpy(ret, sparse_header, HEADER_SIZE);
    for (size_t i = 0, end = 0; i < HLL_REGISTERS; i = end) {
        for (end = i + 1; end < HLL_REGISTERS && registers[end] == registers[i]; end++) {
        }
        size_t added = registers[i] > SPARSE_VALUE_MAX
                           ? 0
                           : encode_run(registers[i], end - i, ret + n, SPARSE_MAX - n);
        if (added == 0) {
            return 0;
        }
        n += added;
    }
    return n;
}

/* Write four registers into three bytes each time, the first one into the lowest bits. */
static void encode_dense(const uint8_t *registers, uint8_t *ret)
{
    memcpy(ret, dense_header, HEADER_SIZE);
    ret += HEADER_SIZE;
    for (size_t i = 0; i < HLL_REGISTERS; i += 4, ret += 3) {
        uint32_t four = registers[i] | (uint32_t)registers[i + 1] << 6 |
                        (uint32_t)registers[i + 2] << 12 | (uint32_t)registers[i + 3] << 18;
        ret[0] = (uint8_t)four;
        ret[1] = (uint8_t)(four >> 8);
        ret[2] = (uint8_t)(four >> 16);
    }
}

size_t hll_encode(const struct hll *hll, uint8_t *ret)
{
    size_t n = encode_sparse(hll->registers, ret);
    if (n == 0) {
        encode_dense(hll->registers, ret);
        n = HLL_DENSE_SIZE;
    }
    return n;
}

static void sort_places(struct hll_place *places, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct hll_place place = places[i];
        size_t at = i;
        for (; at > 0 && places[at - 1].index > place.index; at--) {
            places[at] = places[at - 1];
        }
        places[at] = place;
    }
}

size_t hll_encode_few(struct hll_place *places, size_t n, uint8_t *ret)
{
    size_t used = HEADER_SIZE;
    size_t next = 0; /* register */
    sort_places(places, n);
    memcpy(ret, sparse_header, HEADER_SIZE);
    for (size_t i = 0; i < n; i++) {
        uint8_t value = places[i].count;
        for (; i + 1 < n && places[i + 1].index == places[i].index; i++) {
            value = places[i + 1].count > value ? places[i + 1].count : value;
        }
        if (value > SPARSE_VALUE_MAX) {
            return 0;
        }
        if (places[i].index > next) {
            used += encode_run(0, places[i].index - next, ret + used, HLL_FEW_SIZE - used);
        }
        used += encode_run(value, 1, ret + used, HLL_FEW_SIZE - used);
        next = places[i].index + (size_t)1;
    }
    if (next < HLL_REGISTERS) {
        used += encode_run(0, HLL_REGISTERS - next, ret + used, HLL_FEW_SIZE - used);
    }
    return used;
}

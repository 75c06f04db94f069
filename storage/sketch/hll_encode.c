/* hll_encode.c - a sketch as Redis's string; hll.c describes the format. */
#include "storage/sketch/hll.h"

#include <string.h>

#define HEADER_SIZE      16
#define SPARSE_MAX       3000 /* hll-sparse-max-bytes, with the header */
#define SPARSE_VALUE_MAX 32
#define ZERO_MAX         64
#define VAL_MAX          4

static const uint8_t dense_header[HEADER_SIZE] = {'H', 'Y', 'L', 'L', [15] = 0x80};
static const uint8_t sparse_header[HEADER_SIZE] = {'H', 'Y', 'L', 'L', 1, [15] = 0x80};

/* The opcodes of @length registers of @value.  Returns how many bytes, at most @room; 0: it does
 * not fit. */
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

/* 0: not below SPARSE_MAX, or not at all. */
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

/* Four registers in three bytes, the first in the lowest bits. */
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

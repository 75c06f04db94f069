#include "storage/log/packed.h"

#include <endian.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES sizeof(uint32_t)
#define RATIO_MAX    255 /* a byte of a block stands for at most so many bytes */

bool packed_write(struct buffer *out, struct slice chunks)
{
    if (chunks.n == 0) {
        return true;
    }
    bool is_long = chunks.n > PACKED_MAX;
    size_t room = is_long ? chunks.n : (size_t)LZ4_compressBound((int)chunks.n);
    if (!buffer_expect(out, LENGTH_BYTES + room)) {
        return false;
    }
    uint32_t length = htole32((uint32_t)chunks.n);
    memcpy(out->p, &length, LENGTH_BYTES);
    char *block = out->p + LENGTH_BYTES;
    int n = is_long ? 0 : LZ4_compress_default(chunks.p, block, (int)chunks.n, (int)room);
    bool is_shorter = n > 0 && (size_t)n < chunks.n;
    if (!is_shorter) {
        memcpy(block, chunks.p, chunks.n);
    }
    out->n = LENGTH_BYTES + (is_shorter ? (size_t)n : chunks.n);
    return true;
}

enum packed_err packed_read(struct slice packed, struct arena *arena, struct slice *ret)
{
    if (packed.n == 0) {
        *ret = packed;
        return PACKED_OK;
    }
    if (packed.n <= LENGTH_BYTES) {
        return PACKED_BROKEN;
    }
    uint32_t length;
    memcpy(&length, packed.p, LENGTH_BYTES);
    size_t n = le32toh(length);
    struct slice block = {packed.p + LENGTH_BYTES, packed.n - LENGTH_BYTES};
    if (n == block.n) {
        *ret = block;
        return PACKED_OK;
    }
    if (n < block.n || n > PACKED_MAX || n / RATIO_MAX > block.n) {
        return PACKED_BROKEN;
    }
    char *chunks = arena_alloc(arena, n);
    if (chunks == NULL) {
        return PACKED_NOMEM;
    }
    *ret = (struct slice){chunks, n};
    int got = LZ4_decompress_safe(block.p, chunks, (int)block.n, (int)n);
    return got >= 0 && (size_t)got == n ? PACKED_OK : PACKED_BROKEN;
}

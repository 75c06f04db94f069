/* fuzz_packed.c - libFuzzer target: what an entry holds of chunks, packed (storage/log/packed.h).
 *
 * The input is taken twice.  As packed bytes, hostile ones too: they are broken, or they come to as
 * many bytes as they say, and these packed again come to the same.  As chunks: what is packed reads
 * back as it was, and cut off or with a byte behind it it is broken, or other bytes of another
 * length.
 */
#include "storage/log/packed.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static size_t told_length(struct slice packed)
{
    const uint8_t *p = (const uint8_t *)packed.p;
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

/* A copy of exactly this size: reading past it is seen. */
static char *copy_of(struct slice bytes)
{
    char *copy = malloc(bytes.n);
    if (bytes.n > 0) {
        memcpy(copy, bytes.p, bytes.n);
    }
    return copy;
}

static void check_written(struct slice chunks)
{
    struct buffer packed = {0};
    struct arena arena = {0};
    struct slice back;
    require(packed_write(&packed, chunks) && packed.n <= packed.capacity);
    require(packed.n <= chunks.n + 4 && (packed.n > 0) == (chunks.n > 0));
    require(packed_read((struct slice){packed.p, packed.n}, &arena, &back) == PACKED_OK);
    require(slice_equal(back, chunks));
    if (packed.n > 0) {
        char *cut = copy_of((struct slice){packed.p, packed.n - 1});
        enum packed_err err = packed_read((struct slice){cut, packed.n - 1}, &arena, &back);
        require(err == PACKED_BROKEN || back.n != chunks.n || !slice_equal(back, chunks));
        free(cut);
    }
    arena_release(&arena);
    buffer_release(&packed);
}

static void check_read(struct slice input)
{
    struct arena arena = {0};
    struct slice chunks;
    char *bytes = copy_of(input);
    struct slice packed = {bytes, input.n};
    enum packed_err err = packed_read(packed, &arena, &chunks);
    require(err == PACKED_OK || err == PACKED_BROKEN);
    if (err == PACKED_OK) {
        require(chunks.n == (packed.n > 0 ? told_length(packed) : 0));
        char *read = copy_of(chunks); /* each byte is there */
        check_written((struct slice){read, chunks.n});
        free(read);
    }
    arena_release(&arena);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = {(const char *)data, size};
    check_read(input);
    check_written(input);
    return 0;
}

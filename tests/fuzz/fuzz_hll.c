/* fuzz_hll.c - libFuzzer target: any string given to hll_merge(), and what was read of it
 * written anew.
 *
 *     clang -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_hll.c storage/sketch/hll.c \
 *         storage/sketch/hll_simd.c storage/sketch/bloom.c -lm
 *     ./a.out tests/fuzz/corpus/hll
 *
 * The seeds are the encodings of a few sets, and one of each corruption.  libFuzzer takes the
 * longest seed, a dense one, for the longest input.
 */
#include "storage/sketch/hll.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/hll_add.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* A union: no register lower than it was, none more than six bits, none from nowhere, and the same
 * string once more changes nothing. */
static void check_union(
    const struct hll *before, const struct hll *after, const void *string, size_t n)
{
    struct hll again = *after, alone;

    hll_clear(&alone);
    require(hll_merge(&alone, string, n));
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        require(alone.registers[i] <= 63);
        require(after->registers[i] >= before->registers[i]);
        require(after->registers[i] >= alone.registers[i]);
        require(after->registers[i] == before->registers[i] ||
                after->registers[i] == alone.registers[i]);
    }
    require(hll_merge(&again, string, n));
    require(memcmp(&again, after, sizeof(again)) == 0);
    (void)hll_estimate(&alone);
    require(hll_estimate(&again) == hll_estimate(after));
}

/* What is written of the string's registers is no other sketch when it is read. */
static void check_written(const void *string, size_t n)
{
    uint8_t written[HLL_DENSE_SIZE];
    struct hll alone, read;
    hll_clear(&alone);
    hll_clear(&read);
    require(hll_merge(&alone, string, n));
    size_t written_n = hll_encode(&alone, written);
    require(written_n <= sizeof(written) && hll_merge(&read, written, written_n));
    require(memcmp(&alone, &read, sizeof(alone)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hll before, after;

    /* Registers that differ from their neighbours and lie within those of real strings. */
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        before.registers[i] = (uint8_t)(i * 7 % 31);
    }
    after = before;
    if (hll_merge(&after, data, size)) {
        check_union(&before, &after, data, size);
        check_written(data, size);
    } else {
        require(memcmp(&before, &after, sizeof(after)) == 0);
    }

    hll_add(&after, data, size);
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        require(after.registers[i] <= 63);
    }
    return 0;
}

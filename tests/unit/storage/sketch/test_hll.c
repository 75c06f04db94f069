/* test_hll.c - hashes, encodings and estimates, against vectors taken from Redis 7.0.15.
 *
 * What needs a running Redis (thousands of random sets, PFMERGE) is in
 * integration/test_hll_redis.py.
 */
#include "storage/sketch/hll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/lib/hll_add.h"

#define HEADER_SIZE     16
#define SPARSE_MAX_SIZE (HEADER_SIZE + 2 * HLL_REGISTERS)

static const char DENSE_HEADER[] = "HYLL\0\0\0\0\0\0\0\0\0\0\0\x80";
static const char SPARSE_HEADER[] = "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80";

/* PFADD h, and PFADD h a b c, as GET shows them. */
static const char EMPTY[] = "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff";
static const char A_B_C[] = "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80"
                            "\x60\xf3\x80\x50\xb1\x84\x4b\xfb\x80\x42\x5a";

#define SIZE_OF(literal) (sizeof(literal) - 1)

/* Helpers */

static struct hll *hll_new(void)
{
    struct hll *hll = malloc(sizeof(*hll));

    cr_assert_not_null(hll);
    hll_clear(hll);
    return hll;
}

/* hll_add() "e<from>" to "e<to - 1>". */
static void add_range(struct hll *hll, int from, int to)
{
    char element[16];

    for (int i = from; i < to; i++)
        hll_add(hll, element, (size_t)snprintf(element, sizeof(element), "e%d", i));
}

/* hll_merge() from memory that ends where the string does, so that ASan sees a read past it. */
static bool merge(struct hll *hll, const void *string, size_t n)
{
    void *copy = malloc(n > 0 ? n : 1);
    bool merged;

    cr_assert_not_null(copy);
    memcpy(copy, string, n);
    merged = hll_merge(hll, copy, n);
    free(copy);
    return merged;
}

/* The string must be refused, and the registers stay what they were. */
static void assert_refused(const void *string, size_t n, const char *why)
{
    struct hll *hll = hll_new(), *before = hll_new();

    add_range(hll, 0, 30000);
    memcpy(before, hll, sizeof(*hll));
    cr_assert_not(merge(hll, string, n), "accepted: %s", why);
    cr_assert_eq(memcmp(hll, before, sizeof(*hll)), 0, "registers touched: %s", why);
    free(hll);
    free(before);
}

static void assert_same(const struct hll *a, const struct hll *b)
{
    for (size_t i = 0; i < HLL_REGISTERS; i++)
        cr_assert_eq(a->registers[i], b->registers[i], "register %zu: %d and %d", i,
            a->registers[i], b->registers[i]);
}

/* The dense encoding as its definition says it, bit by bit. */
static size_t encode_dense(const struct hll *hll, uint8_t *ret)
{
    memset(ret, 0, HLL_DENSE_SIZE);
    memcpy(ret, DENSE_HEADER, HEADER_SIZE);
    for (size_t bit = 0; bit < 6 * HLL_REGISTERS; bit++)
        if (hll->registers[bit / 6] >> (bit % 6) & 1)
            ret[HEADER_SIZE + bit / 8] |= (uint8_t)(1u << (bit % 8));
    return HLL_DENSE_SIZE;
}

/* One run of equal registers as opcodes; returns how many bytes. */
static size_t encode_run(uint8_t value, size_t length, uint8_t *ret)
{
    size_t n = 0;

    while (value > 0 && length > 0) {
        size_t part = length < 4 ? length : 4;

        ret[n++] = (uint8_t)(0x80 | (value - 1) << 2 | (int)(part - 1));
        length -= part;
    }
    if (length > 64) {
        ret[n++] = (uint8_t)(0x40 | (length - 1) >> 8);
        ret[n++] = (uint8_t)(length - 1);
    } else if (length > 0) {
        ret[n++] = (uint8_t)(length - 1);
    }
    return n;
}

/* @ret has SPARSE_MAX_SIZE bytes; the registers must be at most 32. */
static size_t encode_sparse(const struct hll *hll, uint8_t *ret)
{
    const uint8_t *registers = hll->registers;
    size_t n = HEADER_SIZE;

    memcpy(ret, SPARSE_HEADER, HEADER_SIZE);
    for (size_t i = 0, end; i < HLL_REGISTERS; i = end) {
        for (end = i + 1; end < HLL_REGISTERS && registers[end] == registers[i]; end++)
            ;
        n += encode_run(registers[i], end - i, ret + n);
    }
    return n;
}

/* Reproducible noise: xorshift64 (Marsaglia). */
static uint64_t noise(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Adding */

static const struct {
    const char *element;
    uint64_t hash;
    size_t index;
    uint8_t count;
} hashes[] = {
    {"", 0xd8dfea6585bc9732, 5938, 2},
    {"a", 0x53d2470a9b43b1a7, 12711, 2},
    {"b", 0xf10cdf96c004fda4, 15780, 1},
    {"c", 0x7585a45533f260f4, 8436, 1},
    {"abc", 0x77ec90aeb374e502, 9474, 1},
    {"foo", 0xe64609b8b0141cb4, 7348, 5},
    {"hello", 0x0f656f01eecfe400, 9216, 1},
    {"user:1", 0x414da53717720853, 2131, 4},
    {"12345678", 0x95ebb86389132953, 10579, 3},
    {"123456789abcdef", 0x0a295e5895af07b9, 1977, 3},
};

/* An element sets the one register that its hash says, to the count that its hash says. */
Test(hll, add_hashes_as_redis)
{
    for (size_t v = 0; v < sizeof(hashes) / sizeof(hashes[0]); v++) {
        struct hll *hll = hll_new(), *expected = hll_new();

        cr_assert_eq(hashes[v].hash & (HLL_REGISTERS - 1), hashes[v].index);
        cr_assert_eq(__builtin_ctzll(hashes[v].hash >> 14) + 1, hashes[v].count);
        expected->registers[hashes[v].index] = hashes[v].count;
        hll_add(hll, hashes[v].element, strlen(hashes[v].element));
        assert_same(hll, expected);
        free(hll);
        free(expected);
    }
}

/* The highest counts, from elements made by running the hash backwards: coin bits of all zeros, and
 * of zeros below the last or the last but one. */
Test(hll, add_counts_up_to_51)
{
    static const struct {
        const char *element;
        size_t index;
        uint8_t count;
    } highest[] = {
        {"\xbc\xa7\x0c\x96\x42\x31\x46\x34", 1234, 51},
        {"\x8e\x85\x4b\xf5\xd7\xf0\x0b\x28", 1234, 50},
        {"\x6f\x23\x46\xb2\x7c\x5b\x7b\x57", 1234, 49},
        {"\x22\x95\xe7\x76\xdc\x15\xca\x3f", 16383, 51},
    };

    for (size_t i = 0; i < sizeof(highest) / sizeof(highest[0]); i++) {
        struct hll *hll = hll_new(), *expected = hll_new();

        expected->registers[highest[i].index] = highest[i].count;
        hll_add(hll, highest[i].element, 8);
        assert_same(hll, expected);
        free(hll);
        free(expected);
    }
}

Test(hll, add_takes_a_null_pointer_for_the_empty_element)
{
    struct hll *hll = hll_new();

    hll_add(hll, NULL, 0);
    cr_assert_eq(hll->registers[5938], 2);
    free(hll);
}

/* Words are read byte by byte or by memcpy: an odd address gives the same hash. */
Test(hll, add_does_not_need_alignment)
{
    char text[] = "?123456789abcdef";
    struct hll *hll = hll_new();

    hll_add(hll, text + 1, 15);
    cr_assert_eq(hll->registers[1977], 3);
    free(hll);
}

Test(hll, add_keeps_the_higher_count)
{
    struct hll *hll = hll_new();

    hll->registers[7348] = 9;
    hll_add(hll, "foo", 3);
    cr_assert_eq(hll->registers[7348], 9);
    hll->registers[7348] = 4;
    hll_add(hll, "foo", 3);
    cr_assert_eq(hll->registers[7348], 5);
    free(hll);
}

Test(hll, add_twice_changes_nothing)
{
    struct hll *once = hll_new(), *twice = hll_new();

    add_range(once, 0, 1000);
    add_range(twice, 0, 1000);
    add_range(twice, 0, 1000);
    assert_same(once, twice);
    free(once);
    free(twice);
}

/* Estimating */

Test(hll, estimates_of_redis)
{
    static const struct {
        int elements;
        uint64_t estimate;
    } published[] = {{0, 0}, {1, 1}, {10000, 9973}, {100000, 100853}};

    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        struct hll *hll = hll_new();

        add_range(hll, 0, published[i].elements);
        cr_assert_eq(hll_estimate(hll), published[i].estimate, "%d elements: %lu",
            published[i].elements, (unsigned long)hll_estimate(hll));
        free(hll);
    }
}

/* Registers no hash yields are counted nowhere: a sketch full of 40s estimates to Redis's number,
 * and putting 52..63 into the same register is all the same. */
Test(hll, estimates_of_forged_registers)
{
    struct hll *hll = hll_new();
    uint64_t estimate;

    memset(hll->registers, 40, HLL_REGISTERS);
    cr_assert_eq(hll_estimate(hll), UINT64_C(12994641697113596));
    hll->registers[7] = 52;
    estimate = hll_estimate(hll);
    for (uint8_t value = 53; value <= 63; value++) {
        hll->registers[7] = value;
        cr_assert_eq(hll_estimate(hll), estimate);
    }
    free(hll);
}

/* Registers that have run full come in through tau(); the numbers are PFCOUNT's. */
Test(hll, estimates_of_full_registers)
{
    static const struct {
        size_t step; /* each step-th register is 51 */
        uint8_t others;
        uint64_t estimate;
    } full[] = {
        {HLL_REGISTERS, 0, 1},
        {HLL_REGISTERS, 10, 12102942},
        {4, 40, UINT64_C(17324386991538560)},
        {2, 3, 189097},
    };

    for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
        struct hll *hll = hll_new();

        for (size_t r = 0; r < HLL_REGISTERS; r++)
            hll->registers[r] = r % full[i].step == 0 ? 51 : full[i].others;
        cr_assert_eq(hll_estimate(hll), full[i].estimate);
        free(hll);
    }
}

/* Merging */

Test(hll, merge_of_the_empty_key)
{
    struct hll *hll = hll_new();

    cr_assert_eq(SIZE_OF(EMPTY), 18);
    cr_assert(merge(hll, EMPTY, SIZE_OF(EMPTY)));
    cr_assert_eq(hll_estimate(hll), 0);
    add_range(hll, 0, 10000);
    cr_assert(merge(hll, EMPTY, SIZE_OF(EMPTY)));
    cr_assert_eq(hll_estimate(hll), 9973);
    free(hll);
}

Test(hll, merge_of_the_bytes_of_redis)
{
    struct hll *merged = hll_new(), *added = hll_new();

    cr_assert(merge(merged, A_B_C, SIZE_OF(A_B_C)));
    hll_add(added, "a", 1);
    hll_add(added, "b", 1);
    hll_add(added, "c", 1);
    assert_same(merged, added);
    cr_assert_eq(hll_estimate(merged), 3);
    free(merged);
    free(added);
}

/* All 64 values, in each of the positions a field can have in its bytes. */
Test(hll, merge_dense_is_its_definition)
{
    uint8_t *dense = malloc(HLL_DENSE_SIZE);
    struct hll *expected = hll_new();
    uint64_t state = 1;

    for (int round = 0; round < 50; round++) {
        struct hll *hll = hll_new();

        for (size_t i = 0; i < HLL_REGISTERS; i++)
            expected->registers[i] = noise(&state) & 63;
        cr_assert(merge(hll, dense, encode_dense(expected, dense)));
        assert_same(hll, expected);
        free(hll);
    }
    free(expected);
    free(dense);
}

Test(hll, merge_of_dense_and_sparse_agree)
{
    static const int sizes[] = {0, 1, 2, 100, 1000, 1700, 1800, 10000, 100000};
    uint8_t *bytes = malloc(SPARSE_MAX_SIZE);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct hll *added = hll_new(), *dense = hll_new(), *sparse = hll_new();

        add_range(added, 0, sizes[i]);
        cr_assert(merge(dense, bytes, encode_dense(added, bytes)));
        cr_assert(merge(sparse, bytes, encode_sparse(added, bytes)));
        assert_same(dense, added);
        assert_same(sparse, added);
        free(added);
        free(dense);
        free(sparse);
    }
    free(bytes);
}

/* What is encoded here reads back as the same registers, in the same encoding as Redis would
 * choose. */
Test(hll, encode_is_read_back)
{
    static const int sizes[] = {0, 1, 2, 100, 1000, 1500, 1800, 10000, 100000};
    uint64_t state = 5;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) + 100; i++) {
        struct hll *hll = hll_new(), *back = hll_new();
        uint8_t bytes[HLL_DENSE_SIZE];

        if (i < sizeof(sizes) / sizeof(sizes[0])) {
            add_range(hll, 0, sizes[i]);
        } else { /* anything: full, few, runs */
            uint64_t mask = noise(&state) & noise(&state), length = 1 + noise(&state) % 300;

            for (size_t r = 0; r < HLL_REGISTERS; r++) {
                hll->registers[r] =
                    (uint8_t)(r / length % 3 == 0 ? noise(&state) & mask & 63 : i % 2);
            }
        }
        size_t n = hll_encode(hll, bytes);
        cr_assert(n <= 3000 || n == HLL_DENSE_SIZE);
        cr_assert_eq(bytes[4], n == HLL_DENSE_SIZE ? 0 : 1);
        cr_assert(merge(back, bytes, n), "set %zu", i);
        assert_same(hll, back);
        if (i < 3) {
            cr_assert_lt(n, 30);
        }
        free(hll);
        free(back);
    }
    struct hll *empty = hll_new();
    uint8_t bytes[HLL_DENSE_SIZE];
    cr_assert_eq(hll_encode(empty, bytes), SIZE_OF(EMPTY));
    cr_assert_eq(memcmp(bytes, EMPTY, SIZE_OF(EMPTY)), 0);
    hll_clear(empty);
    hll_add(empty, "a", 1);
    hll_add(empty, "b", 1);
    hll_add(empty, "c", 1);
    cr_assert_eq(hll_encode(empty, bytes), SIZE_OF(A_B_C));
    cr_assert_eq(memcmp(bytes, A_B_C, SIZE_OF(A_B_C)), 0);
    free(empty);
}

/* The union of 3 overlapping sets, each as a string, in any order and any number of times. */
Test(hll, merge_is_a_union)
{
    static const int orders[][4] = {{0, 1, 2, 2}, {2, 1, 0, 1}, {1, 0, 2, 0}, {1, 1, 2, 0}};
    uint8_t *strings[3];
    size_t sizes[3];
    struct hll *whole = hll_new();

    for (int k = 0; k < 3; k++) {
        struct hll *part = hll_new();

        add_range(part, k * 500, k * 500 + 1000);
        strings[k] = malloc(SPARSE_MAX_SIZE);
        sizes[k] = k == 1 ? encode_dense(part, strings[k]) : encode_sparse(part, strings[k]);
        free(part);
    }
    add_range(whole, 0, 2000);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct hll *hll = hll_new();

        for (size_t j = 0; j < 4; j++)
            cr_assert(merge(hll, strings[orders[i][j]], sizes[orders[i][j]]));
        assert_same(hll, whole);
        free(hll);
    }
    free(whole);
    for (int k = 0; k < 3; k++)
        free(strings[k]);
}

/* A cache that says 42, valid, and noise in the unused bytes: Redis would serve the 42. */
Test(hll, merge_ignores_the_cached_cardinality)
{
    char forged[sizeof(A_B_C)];
    struct hll *hll = hll_new();

    memcpy(forged, A_B_C, sizeof(A_B_C));
    memcpy(forged + 5, "\xff\xff\xff\x2a\0\0\0\0\0\0\0", 11);
    cr_assert(merge(hll, forged, SIZE_OF(A_B_C)));
    cr_assert_eq(hll_estimate(hll), 3);
    free(hll);
}

Test(hll, merge_of_all_sparse_values)
{
    uint8_t *bytes = malloc(SPARSE_MAX_SIZE);
    struct hll *expected = hll_new(), *hll = hll_new();

    for (size_t i = 0; i < HLL_REGISTERS; i++)
        expected->registers[i] = (uint8_t)(i / 5 % 33);
    cr_assert(merge(hll, bytes, encode_sparse(expected, bytes)));
    assert_same(hll, expected);
    free(hll);
    free(expected);
    free(bytes);
}

/* The longest string there is: each register its own ZERO. */
Test(hll, merge_of_single_zeros)
{
    size_t n = HEADER_SIZE + HLL_REGISTERS;
    uint8_t *bytes = calloc(n + 1, 1);
    struct hll *hll = hll_new();

    memcpy(bytes, SPARSE_HEADER, HEADER_SIZE);
    cr_assert(merge(hll, bytes, n));
    cr_assert_eq(hll_estimate(hll), 0);
    assert_refused(bytes, n - 1, "one ZERO short");
    assert_refused(bytes, n + 1, "one ZERO long");
    free(hll);
    free(bytes);
}

/* Corruption */

Test(hll, merge_refuses_null)
{
    struct hll *hll = hll_new();

    cr_assert_not(hll_merge(hll, NULL, 0));
    cr_assert_eq(hll_estimate(hll), 0);
    free(hll);
}

Test(hll, merge_refuses_every_prefix)
{
    for (size_t n = 0; n < SIZE_OF(EMPTY); n++)
        assert_refused(EMPTY, n, "prefix of the empty key");
    for (size_t n = 0; n < SIZE_OF(A_B_C); n++)
        assert_refused(A_B_C, n, "prefix of a, b, c");
}

Test(hll, merge_refuses_a_wrong_header)
{
    for (size_t i = 0; i < 4; i++) {
        char bytes[sizeof(A_B_C)];

        memcpy(bytes, A_B_C, sizeof(A_B_C));
        bytes[i] ^= 0x20;
        assert_refused(bytes, SIZE_OF(A_B_C), "magic");
    }
    for (int encoding = 0; encoding < 256; encoding++) {
        char bytes[sizeof(A_B_C)];

        memcpy(bytes, A_B_C, sizeof(A_B_C));
        bytes[4] = (char)encoding;
        if (encoding != 1)
            assert_refused(bytes, SIZE_OF(A_B_C), "encoding");
    }
}

Test(hll, merge_refuses_a_wrong_dense_length)
{
    uint8_t *dense = calloc(HLL_DENSE_SIZE + 1, 1);

    memset(dense, 0xff, HLL_DENSE_SIZE + 1);
    memcpy(dense, DENSE_HEADER, HEADER_SIZE);
    assert_refused(dense, HEADER_SIZE, "dense, no registers");
    assert_refused(dense, HLL_DENSE_SIZE - 1, "dense, one byte short");
    assert_refused(dense, HLL_DENSE_SIZE + 1, "dense, one byte long");
    dense[4] = 2;
    assert_refused(dense, HLL_DENSE_SIZE, "encoding 2");
    free(dense);
}

/* Runs that do not cover the registers exactly.  Most start with a VAL of 32, which would show. */
#define RUNS(why, bytes)                                                                           \
    {                                                                                              \
        why, bytes, sizeof(bytes) - 1                                                              \
    }

static const struct {
    const char *why;
    const char *bytes;
    size_t n;
} corrupt_runs[] = {
    RUNS("no runs", ""),
    RUNS("sum one short", "\xfc\x7f\xfd"),
    RUNS("sum one long", "\xfc\x7f\xff"),
    RUNS("ZERO past the end", "\xfc\x7f\xfd\x01"),
    RUNS("ZERO after the end", "\xfc\x7f\xfe\x00"),
    RUNS("XZERO past the end", "\xfc\x7f\xfd\x40\x01"),
    RUNS("XZERO after the end", "\xfc\x7f\xfe\x40\x00"),
    RUNS("VAL past the end", "\xfc\x7f\xfd\xfd"),
    RUNS("VAL after the end", "\xfc\x7f\xfe\xfc"),
    RUNS("XZERO without its second byte", "\xfc\x7f\xfd\x40"),
    RUNS("nothing but half an XZERO", "\x7f"),
    RUNS("half an XZERO after the end", "\xfc\x7f\xfe\x40"),
};

Test(hll, merge_refuses_runs_that_do_not_fit)
{
    for (size_t i = 0; i < sizeof(corrupt_runs) / sizeof(corrupt_runs[0]); i++) {
        char bytes[HEADER_SIZE + 8];

        memcpy(bytes, SPARSE_HEADER, HEADER_SIZE);
        memcpy(bytes + HEADER_SIZE, corrupt_runs[i].bytes, corrupt_runs[i].n);
        assert_refused(bytes, HEADER_SIZE + corrupt_runs[i].n, corrupt_runs[i].why);
    }
}

/* CVE-2025-32023: XZEROs enough to wrap a 32-bit sum back to 0 (or below), then good runs. */
Test(hll, merge_refuses_a_sum_that_wraps)
{
    static const size_t xzeros[] = {2, 131072, 131073, 262144};

    for (size_t i = 0; i < sizeof(xzeros) / sizeof(xzeros[0]); i++) {
        size_t n = HEADER_SIZE;
        char *bytes = malloc(n + 2 * xzeros[i] + 3);

        memcpy(bytes, SPARSE_HEADER, HEADER_SIZE);
        for (size_t k = 0; k < xzeros[i]; k++, n += 2)
            memcpy(bytes + n, "\x7f\xff", 2);
        memcpy(bytes + n, "\xfc\x7f\xfe", 3);
        assert_refused(bytes, n + 3, "runs that wrap");
        free(bytes);
    }
}

/* Every single-byte change of a string is either refused whole or gives registers in range. */
Test(hll, merge_survives_any_changed_byte)
{
    for (size_t at = 0; at < SIZE_OF(A_B_C); at++) {
        for (int value = 0; value < 256; value++) {
            char bytes[sizeof(A_B_C)];
            struct hll *hll = hll_new(), *empty = hll_new();

            memcpy(bytes, A_B_C, sizeof(A_B_C));
            bytes[at] = (char)value;
            if (!merge(hll, bytes, SIZE_OF(A_B_C)))
                cr_assert_eq(memcmp(hll, empty, sizeof(*hll)), 0);
            else
                cr_assert_leq(hll_estimate(hll), 16384 * 32);
            free(hll);
            free(empty);
        }
    }
}

/* By another reading of Redis's rules, which agrees with PFCOUNT elsewhere in these tests. */
Test(hll, place_of_an_element)
{
    struct hll is;
    struct hll expected;
    hll_clear(&is);
    hll_clear(&expected);
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t element = i * UINT64_C(0x9e3779b97f4a7c15);
        struct hll_place place = hll_place_of(&element, sizeof(element));
        uint8_t *reg = &is.registers[place.index];
        *reg = place.count > *reg ? place.count : *reg;
        hll_add(&expected, &element, sizeof(element));
    }
    cr_expect_arr_eq(is.registers, expected.registers, sizeof(is.registers));
}

/* The places of few elements make the string that Redis makes of these, and one that reads back as
 * their registers. */
Test(hll, encode_few_is_read_back)
{
    static const char *const abc[] = {"a", "b", "c"};
    struct hll_place places[HLL_FEW];
    uint8_t bytes[HLL_FEW_SIZE];
    for (size_t i = 0; i < 3; i++)
        places[i] = hll_place_of(abc[i], 1);
    cr_assert_eq(hll_encode_few(places, 3, bytes), SIZE_OF(A_B_C));
    cr_assert_arr_eq(bytes, A_B_C, SIZE_OF(A_B_C));
    cr_assert_eq(hll_encode_few(places, 0, bytes), SIZE_OF(EMPTY));
    cr_assert_arr_eq(bytes, EMPTY, SIZE_OF(EMPTY));
    srand(1);
    for (int round = 0; round < 3000; round++) {
        struct hll *expected = hll_new(), *is = hll_new();
        size_t n = (size_t)(rand() % (HLL_FEW + 1));
        for (size_t i = 0; i < n; i++) {
            /* few registers in half of the rounds, so that some come twice or lie side by side */
            int index = round % 2 == 0 ? rand() % HLL_REGISTERS : rand() % 50 * 327 + rand() % 2;
            places[i].index = (uint16_t)index;
            places[i].count = (uint8_t)(1 + rand() % 32);
            uint8_t *reg = &expected->registers[places[i].index];
            *reg = places[i].count > *reg ? places[i].count : *reg;
        }
        size_t size = hll_encode_few(places, n, bytes);
        cr_assert(size > 0 && size <= HLL_FEW_SIZE && merge(is, bytes, size));
        assert_same(is, expected);
        free(expected);
        free(is);
    }
}

Test(hll, encode_few_of_a_count_that_no_sparse_string_holds)
{
    struct hll_place places[] = {{5, 32}, {5, 33}, {6, 1}};
    uint8_t bytes[HLL_FEW_SIZE];
    cr_assert_eq(hll_encode_few(places, 3, bytes), 0u);
    cr_assert_gt(hll_encode_few((struct hll_place[]){{16383, 32}}, 1, bytes), 0u);
}

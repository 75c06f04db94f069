#include "storage/sketch/bitmap.h"

void bitmap_or(uint64_t *words, size_t n, struct slice bytes)
{
    size_t whole = bytes.n / 8 < n ? bytes.n / 8 : n;
    for (size_t i = 0; i < whole; i++) {
        uint64_t word;
        memcpy(&word, bytes.p + 8 * i, 8);
        words[i] |= word;
    }
    if (whole < n && bytes.n % 8 != 0) {
        uint64_t word = 0;
        memcpy(&word, bytes.p + 8 * whole, bytes.n % 8);
        words[whole] |= word;
    }
}

void bitmap_and(uint64_t *words, size_t n, struct slice bytes)
{
    size_t whole = bytes.n / 8 < n ? bytes.n / 8 : n;
    for (size_t i = 0; i < whole; i++) {
        uint64_t word;
        memcpy(&word, bytes.p + 8 * i, 8);
        words[i] &= word;
    }
    if (whole < n) {
        uint64_t word = 0;
        if (bytes.n % 8 != 0) {
            memcpy(&word, bytes.p + 8 * whole, bytes.n % 8);
        }
        words[whole] &= word;
        memset(words + whole + 1, 0, (n - whole - 1) * 8);
    }
}

#if defined(__x86_64__)
/* Count with one instruction a word, which processors of the last fifteen years have. */
__attribute__((target("popcnt"))) static uint64_t count_by_instruction(
    const uint64_t *a, const uint64_t *b, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        count += (uint64_t)__builtin_popcountll(a[i] & b[i]);
    }
    return count;
}
#endif

uint64_t bitmap_count_both(const uint64_t *a, const uint64_t *b, size_t n)
{
    uint64_t count = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return count_by_instruction(a, b, n);
    }
#endif
    for (size_t i = 0; i < n; i++) {
        count += (uint64_t)__builtin_popcountll(a[i] & b[i]);
    }
    return count;
}

/* The word whose greatest bit is the first bit of @word in Redis's order. */
static uint64_t in_order(uint64_t word)
{
    uint8_t bytes[8];
    uint64_t value = 0;
    memcpy(bytes, &word, 8);
    for (int i = 0; i < 8; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

uint64_t bitmap_next(const uint64_t *words, size_t n, uint64_t from)
{
    for (uint64_t i = from / 64; i < n; i++) {
        uint64_t word = words[i] == 0 ? 0 : in_order(words[i]);
        if (i == from / 64) {
            word &= UINT64_MAX >> from % 64;
        }
        if (word != 0) {
            return i * 64 + (uint64_t)__builtin_clzll(word);
        }
    }
    return (uint64_t)n * 64;
}

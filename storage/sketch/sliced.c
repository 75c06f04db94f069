#include "storage/sketch/sliced.h"

#include <stdbool.h>
#include <string.h>

/* The compiler makes vectors of the loops over SLICED_WORDS words. */

unsigned sliced_digits(size_t most)
{
    unsigned digits = 1;
    while (most >> digits != 0) {
        digits++;
    }
    return digits;
}

static bool any(const uint64_t words[static SLICED_WORDS])
{
    uint64_t all = 0;
    for (size_t k = 0; k < SLICED_WORDS; k++) {
        all |= words[k];
    }
    return all != 0;
}

void sliced_add(struct sliced *s, size_t n, const uint64_t *users)
{
    for (size_t i = 0; i < n; i += SLICED_WORDS) {
        uint64_t carry[SLICED_WORDS];
        memcpy(carry, users + i, sizeof(carry));
        for (unsigned j = 0; j < s->digits && any(carry); j++) {
            uint64_t *slice = s->words + j * s->stride + i;
            for (size_t k = 0; k < SLICED_WORDS; k++) {
                uint64_t before = slice[k];
                slice[k] = before ^ carry[k];
                carry[k] &= before;
            }
        }
    }
}

/* The users of one block whose number is not 0. */
static void nonzero(const struct sliced *s, size_t at, uint64_t ret[static SLICED_WORDS])
{
    memset(ret, 0, SLICED_WORDS * sizeof(*ret));
    for (unsigned j = 0; j < s->digits; j++) {
        const uint64_t *slice = s->words + j * s->stride + at;
        for (size_t k = 0; k < SLICED_WORDS; k++) {
            ret[k] |= slice[k];
        }
    }
}

void sliced_countdown(struct sliced *s, size_t n, const uint64_t *users, size_t number)
{
    for (size_t i = 0; i < n; i += SLICED_WORDS) {
        uint64_t borrow[SLICED_WORDS];
        nonzero(s, i, borrow);
        for (unsigned j = 0; j < s->digits; j++) {
            uint64_t *slice = s->words + j * s->stride + i;
            uint64_t digit = (number >> j & 1) != 0 ? UINT64_MAX : 0;
            for (size_t k = 0; k < SLICED_WORDS; k++) {
                uint64_t less = slice[k] ^ borrow[k];
                borrow[k] &= less; /* a digit that was 0 became 1, and borrows from the next */
                slice[k] = (less & ~users[i + k]) | (digit & users[i + k]);
            }
        }
    }
}

void sliced_at_least(const struct sliced *s, size_t n, size_t number, uint64_t *ret_users)
{
    for (size_t i = 0; i < n; i += SLICED_WORDS) {
        uint64_t more[SLICED_WORDS] = {0};
        uint64_t equal[SLICED_WORDS]; /* in the digits so far, from the greatest on */
        memset(equal, 0xff, sizeof(equal));
        for (unsigned j = s->digits; j-- > 0;) {
            const uint64_t *slice = s->words + j * s->stride + i;
            uint64_t digit = (number >> j & 1) != 0 ? UINT64_MAX : 0;
            for (size_t k = 0; k < SLICED_WORDS; k++) {
                more[k] |= equal[k] & slice[k] & ~digit;
                equal[k] &= ~(slice[k] ^ digit);
            }
        }
        for (size_t k = 0; k < SLICED_WORDS; k++) {
            ret_users[i + k] = more[k] | equal[k];
        }
    }
}

/* Count the users of word @at by their numbers.  A part is users whose digits from `digits` on are
 * those of `number`; the next digit divides it in two.  At most 64 parts have users, however many
 * numbers there are. */
static inline __attribute__((always_inline)) void count_word(
    const struct sliced *s, size_t at, uint64_t *counts)
{
    struct {
        uint64_t users;
        size_t number;
        unsigned digits;
    } parts[SLICED_DIGITS_MAX + 1];
    size_t n_parts = 1;
    parts[0].users = 0;
    parts[0].number = 0;
    parts[0].digits = s->digits;
    for (unsigned j = 0; j < s->digits; j++) {
        parts[0].users |= s->words[j * s->stride + at];
    }
    while (n_parts > 0) {
        uint64_t users = parts[--n_parts].users;
        size_t number = parts[n_parts].number;
        unsigned digits = parts[n_parts].digits;
        while (users != 0 && digits > 0) {
            uint64_t slice = s->words[--digits * s->stride + at];
            if ((users & ~slice) != 0) {
                parts[n_parts].users = users & ~slice;
                parts[n_parts].number = number;
                parts[n_parts++].digits = digits;
            }
            users &= slice;
            number |= (size_t)1 << digits;
        }
        if (users != 0) {
            counts[number] += (uint64_t)__builtin_popcountll(users);
        }
    }
}

#if defined(__x86_64__)
/* With one instruction for the users of a word; see sketch/bitmap.c. */
__attribute__((target("popcnt"))) static void count_by_instruction(
    const struct sliced *s, size_t n, uint64_t *counts)
{
    for (size_t i = 0; i < n; i++) {
        count_word(s, i, counts);
    }
}
#endif

void sliced_histogram(const struct sliced *s, size_t n, uint64_t *counts)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        count_by_instruction(s, n, counts);
        return;
    }
#endif
    for (size_t i = 0; i < n; i++) {
        count_word(s, i, counts);
    }
}

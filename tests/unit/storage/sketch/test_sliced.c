#include "storage/sketch/sliced.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "tests/lib/dice.h"

TestSuite(sliced, .timeout = 60);

#define WORDS  (3 * SLICED_WORDS)
#define USERS  (64 * WORDS)
#define STRIDE (WORDS + 5) /* what lies between slices belongs to somebody else */
#define ALIEN  0x5a5a5a5a5a5a5a5au

static bool has(const uint64_t *users, size_t i)
{
    return (users[i / 64] >> i % 64 & 1) != 0;
}

/* Nobody, everybody, few, or any. */
static void random_users(struct dice *dice, uint64_t users[static WORDS])
{
    int64_t kind = dice_below(dice, 8);
    dice_bytes(dice, users, WORDS * sizeof(*users));
    for (size_t i = 0; i < WORDS; i++) {
        users[i] = kind == 0   ? 0
                   : kind == 1 ? UINT64_MAX
                   : kind == 2 ? users[i] & dice_u64(dice) & dice_u64(dice) & dice_u64(dice)
                               : users[i];
    }
}

struct numbers {
    uint64_t words[SLICED_DIGITS_MAX * STRIDE];
    struct sliced sliced;
    size_t model[USERS];
};

static void numbers_init(struct numbers *n, unsigned digits)
{
    memset(n, 0, sizeof(*n));
    n->sliced = (struct sliced){.words = n->words, .stride = STRIDE, .digits = digits};
    for (unsigned j = 0; j < SLICED_DIGITS_MAX; j++) {
        for (size_t i = j < digits ? WORDS : 0; i < STRIDE; i++) {
            n->words[j * STRIDE + i] = ALIEN;
        }
    }
}

/* All answers are the model's, for numbers up to @most, and nothing else was touched. */
static void check(const struct numbers *n, size_t most, uint64_t seed)
{
    uint64_t counts[4096 + 1] = {0};
    uint64_t expected[4096 + 1] = {0};
    for (size_t i = 0; i < USERS; i++) {
        expected[n->model[i]] += n->model[i] != 0;
    }
    sliced_histogram(&n->sliced, WORDS, counts);
    cr_assert(memcmp(counts, expected, sizeof(counts)) == 0, "TALLYD_TEST_SEED=%" PRIu64, seed);
    for (size_t number = 1; number <= most; number += 1 + number / 8) {
        uint64_t users[WORDS];
        sliced_at_least(&n->sliced, WORDS, number, users);
        for (size_t i = 0; i < USERS; i++) {
            cr_assert_eq(has(users, i), n->model[i] >= number, "TALLYD_TEST_SEED=%" PRIu64, seed);
        }
    }
    for (unsigned j = 0; j < SLICED_DIGITS_MAX; j++) {
        for (size_t i = j < n->sliced.digits ? WORDS : 0; i < STRIDE; i++) {
            cr_assert_eq(n->words[j * STRIDE + i], ALIEN);
        }
    }
}

Test(sliced, digits_hold_the_number)
{
    for (size_t most = 1; most < 65536; most++) {
        unsigned digits = sliced_digits(most);
        cr_assert(most >> digits == 0 && (digits == 1 || most >> (digits - 1) != 0), "%zu", most);
    }
}

Test(sliced, days_are_added_up)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    static const size_t days[] = {1, 2, 3, 7, 8, 30, 31, 32, 127, 400, 1100, 4096};
    for (size_t round = 0; round < sizeof(days) / sizeof(days[0]); round++) {
        static struct numbers n;
        numbers_init(&n, sliced_digits(days[round]));
        for (size_t day = 0; day < days[round]; day++) {
            uint64_t users[WORDS];
            random_users(&dice, users);
            users[0] |= 1; /* somebody comes every day */
            sliced_add(&n.sliced, WORDS, users);
            for (size_t i = 0; i < USERS; i++) {
                n.model[i] += has(users, i);
            }
            if (day < 10 || day + 1 == days[round]) {
                check(&n, days[round], seed);
            }
        }
        cr_assert_eq(n.model[0], days[round]);
    }
}

Test(sliced, days_are_counted_down)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    static const size_t days[] = {1, 2, 3, 4, 7, 8, 9, 90, 1024};
    for (size_t round = 0; round < sizeof(days) / sizeof(days[0]); round++) {
        static struct numbers n;
        numbers_init(&n, sliced_digits(days[round]));
        for (size_t day = 0; day < 3 * days[round] && day < 500; day++) {
            uint64_t users[WORDS] = {0};
            if (dice_chance(&dice, 300)) {
                random_users(&dice, users);
            }
            sliced_countdown(&n.sliced, WORDS, users, days[round]);
            for (size_t i = 0; i < USERS; i++) {
                n.model[i] = has(users, i) ? days[round] : n.model[i] - (n.model[i] > 0);
            }
            if (day < 20 || dice_chance(&dice, 50)) {
                check(&n, days[round], seed);
            }
        }
    }
}

Test(sliced, nobody)
{
    static struct numbers n;
    uint64_t counts[2] = {0};
    numbers_init(&n, 1);
    sliced_add(&n.sliced, 0, NULL);
    sliced_countdown(&n.sliced, 0, NULL, 1);
    sliced_histogram(&n.sliced, 0, counts);
    sliced_histogram(&n.sliced, WORDS, counts);
    cr_expect(counts[0] == 0 && counts[1] == 0);
}

#include "storage/base/buffer.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/redis/resp.h"
#include "tests/lib/dice.h"
#include "tests/lib/resp_words.h"

TestSuite(buffer, .timeout = 60);

static void check_content(const struct buffer *b, const char *expected)
{
    cr_expect_not(b->failed);
    cr_expect(slice_equal((struct slice){b->p, b->n}, slice_of(expected)), "%.*s", (int)b->n, b->p);
}

/* ---- success ---- */

Test(buffer, new_holds_nothing_and_no_memory)
{
    struct buffer b;
    buffer_init(&b);
    cr_expect(b.p == NULL && b.n == 0 && b.capacity == 0 && !b.failed);
    buffer_append(&b, NULL, 0);
    buffer_clear(&b, 0);
    cr_expect_null(b.p);
    buffer_release(&b);
}

Test(buffer, appends)
{
    struct buffer b;
    buffer_init(&b);
    buffer_text(&b, "a");
    buffer_append(&b, "b\0c", 3);
    buffer_decimal(&b, -120);
    memcpy(buffer_grow(&b, 2), "xy", 2);
    buffer_append(&b, "", 0);
    cr_expect(slice_equal((struct slice){b.p, b.n}, SLICE("ab\0c-120xy")));
    buffer_release(&b);
    cr_expect(b.p == NULL && b.n == 0 && b.capacity == 0);
}

Test(buffer, decimals)
{
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {{0, "0"}, {7, "7"}, {-1, "-1"}, {10, "10"}, {1795190400000, "1795190400000"},
        {INT64_MAX, "9223372036854775807"}, {INT64_MIN, "-9223372036854775808"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[21];
        memset(text, '#', sizeof(text));
        size_t n = decimal_print(cases[i].value, text);
        cr_expect(
            slice_equal((struct slice){text, n}, slice_of(cases[i].text)), "%s", cases[i].text);
        cr_expect(n == sizeof(text) || text[n] == '#', "%s: no NUL", cases[i].text);
    }
}

Test(buffer, clear_gives_back_what_is_too_much)
{
    struct buffer b;
    buffer_init(&b);
    cr_assert_not_null(buffer_grow(&b, 100));
    const char *p = b.p;
    buffer_clear(&b, b.capacity);
    cr_expect(b.p == p && b.n == 0);
    buffer_clear(&b, b.capacity - 1);
    cr_expect(b.p == NULL && b.capacity == 0);
    buffer_text(&b, "again");
    check_content(&b, "again");
    buffer_release(&b);
}

/* Random pieces against one long text that has room for all. */
Test(buffer, agrees_with_a_plain_text)
{
    enum { ROOM = 1 << 20 };
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    char *text = malloc(ROOM);
    struct buffer b;
    buffer_init(&b);
    cr_assert_not_null(text);
    for (int round = 0; round < 20; round++) {
        size_t n = 0;
        buffer_clear(&b, (size_t)dice_below(&dice, 100000));
        while (n < ROOM / 4 && !dice_chance(&dice, 5)) {
            char piece[3000];
            size_t length = (size_t)dice_below(&dice, dice_chance(&dice, 100) ? sizeof(piece) : 20);
            dice_bytes(&dice, piece, length);
            if (dice_chance(&dice, 500)) {
                buffer_append(&b, piece, length);
                memcpy(text + n, piece, length);
                n += length;
            } else {
                resp_word(&b, piece, length);
                n += (size_t)sprintf(text + n, "$%zu\r\n", length);
                memcpy(text + n, piece, length);
                memcpy(text + n + length, "\r\n", 2);
                n += length + 2;
            }
        }
        cr_assert(slice_equal((struct slice){b.p, b.n}, (struct slice){text, n}),
            "TALLYD_TEST_SEED=%" PRIu64 ", round %d", seed, round);
    }
    buffer_release(&b);
    free(text);
}

/* ---- failure ---- */

#ifndef __SANITIZE_ADDRESS__ /* which aborts where malloc fails */

Test(buffer, failed_allocation_drops_what_follows)
{
    struct buffer b;
    buffer_init(&b);
    buffer_text(&b, "kept");
    cr_expect_null(buffer_grow(&b, SIZE_MAX / 4));
    cr_expect(b.failed);
    buffer_text(&b, "x");
    resp_decimal(&b, 1);
    cr_expect_null(buffer_grow(&b, 1));
    cr_expect(slice_equal((struct slice){b.p, b.n}, SLICE("kept")));
    buffer_clear(&b, SIZE_MAX);
    cr_expect_not(b.failed);
    buffer_text(&b, "new");
    check_content(&b, "new");
    buffer_release(&b);
    cr_expect_not(b.failed);
}

#endif

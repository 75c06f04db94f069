#include "storage/redis/resp.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "tests/lib/dice.h"
#include "tests/lib/resp_words.h"

TestSuite(resp, .timeout = 60);

static void check_content(const struct buffer *b, const char *expected)
{
    cr_expect_not(b->failed);
    cr_expect(slice_equal((struct slice){b->p, b->n}, slice_of(expected)), "%.*s", (int)b->n, b->p);
}

Test(resp, commands)
{
    struct buffer b;
    buffer_init(&b);
    resp_command(&b, "SET", "k", "", NULL);
    check_content(&b, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    buffer_clear(&b, SIZE_MAX);
    resp_head(&b, 3);
    resp_text(&b, "PING");
    resp_decimal(&b, -42);
    resp_word(&b, "1\r\n2", 4);
    check_content(&b, "*3\r\n$4\r\nPING\r\n$3\r\n-42\r\n$4\r\n1\r\n2\r\n");
    buffer_release(&b);
}

Test(resp, words_come_back)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct resp_words words;
    struct buffer b;
    int64_t numbers[200];
    buffer_init(&b);
    for (int i = 0; i < 200; i++) {
        numbers[i] = (int64_t)dice_u64(&dice) >> dice_below(&dice, 64);
        resp_decimal(&b, numbers[i]);
        resp_text(&b, "-0");
    }
    cr_assert(resp_words_read(&b, &words));
    for (int i = 0; i < 200; i++) {
        cr_assert_eq(resp_words_number(&words), numbers[i], "TALLYD_TEST_SEED=%" PRIu64, seed);
        cr_assert(slice_equal(resp_words_take(&words), SLICE("-0")));
    }
    cr_expect(resp_words_over(&words));
    resp_words_release(&words);
    buffer_release(&b);
}

Test(resp, the_reader_of_these_tests_is_strict)
{
    static const char *const texts[] = {"x", "$", "$1", "$1\r\n", "$1\r\na", "$1\r\na\r",
        "$1\r\na\n\r", "$-1\r\n", "$01\r\na\r\n", "$2\r\na\r\n", "$0\r\na\r\n", "$1\na\r\n",
        "*1\r\n", ":1\r\n", "$1\r\na\r\n$", "$99999999999999999999\r\na\r\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct resp_words words;
        struct buffer b;
        buffer_init(&b);
        buffer_text(&b, texts[i]);
        cr_expect_not(resp_words_read(&b, &words), "%s", texts[i]);
        resp_words_release(&words);
        buffer_release(&b);
    }
}

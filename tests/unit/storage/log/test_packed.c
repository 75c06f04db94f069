/* test_packed.c - chunks as a log keeps them: storage/log/packed.h */
#include "storage/log/packed.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct buffer packed;
static struct arena arena;

static void setup(void)
{
    packed = (struct buffer){0};
    arena = (struct arena){0};
}

static void teardown(void)
{
    buffer_release(&packed);
    arena_release(&arena);
}

TestSuite(packed, .init = setup, .fini = teardown);

static enum packed_err read_back(struct slice *ret)
{
    return packed_read((struct slice){packed.p, packed.n}, &arena, ret);
}

static void check_kept(struct slice chunks)
{
    struct slice back;
    cr_assert(packed_write(&packed, chunks));
    cr_assert_eq(read_back(&back), PACKED_OK);
    cr_assert(slice_equal(back, chunks));
}

Test(packed, nothing_is_made_of_nothing)
{
    check_kept(SLICE(""));
    cr_expect_eq(packed.n, 0u);
}

Test(packed, what_repeats_takes_little)
{
    char text[4500];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = "/page of a site, a browser, a campaign, a country"[i % 45];
    }
    check_kept((struct slice){text, sizeof(text)});
    cr_expect_lt(packed.n, 120u);
}

Test(packed, what_does_not_repeat_takes_four_bytes_more)
{
    unsigned char bytes[1000];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(x >> 24);
    }
    check_kept((struct slice){(const char *)bytes, sizeof(bytes)});
    cr_expect_eq(packed.n, 1004u);
}

Test(packed, a_single_byte_is_kept)
{
    check_kept(SLICE("x"));
    cr_expect_eq(packed.n, 5u);
}

/* Other bytes are refused, and nothing is written behind the chunks, where ASan looks. */
Test(packed, broken_bytes_are_told)
{
    char text[600];
    struct slice back;
    memset(text, 'a', sizeof(text));
    cr_assert(packed_write(&packed, (struct slice){text, sizeof(text)}));
    for (size_t cut = 1; cut < packed.n; cut++) {
        struct slice part = {packed.p, packed.n - cut};
        cr_expect_eq(packed_read(part, &arena, &back), PACKED_BROKEN, "cut by %zu", cut);
    }
    static const unsigned char lengths[][4] = {
        {0, 0, 0, 0}, {0x59, 2, 0, 0}, {0x57, 2, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 4}};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        memcpy(packed.p, lengths[i], 4);
        cr_expect_eq(read_back(&back), PACKED_BROKEN, "length %zu", i);
    }
}

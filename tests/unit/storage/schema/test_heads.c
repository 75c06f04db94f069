#include "storage/schema/heads.h"

#include <criterion/criterion.h>

TestSuite(heads, .timeout = 60);

static struct reply text(const char *is)
{
    return (struct reply){.type = REPLY_TEXT, .text = slice_of(is)};
}

static bool take(struct heads *heads, const char *const *words, size_t n)
{
    struct reply items[8];
    for (size_t i = 0; i < n; i++) {
        items[i] = text(words[i]);
    }
    struct reply reply = {.type = REPLY_ARRAY, .items = items, .n = n};
    heads_clear(heads);
    return heads_add(heads, 0, &reply) == STORAGE_OK;
}

Test(heads, of_two_logs)
{
    static const char *const words[] = {"00000000000000aa", "12 00000000000000e1 1795187834000",
        "closed", "17", "00000000000000bb", "0 0 1795187834001"};
    struct heads heads = {0};
    cr_assert(take(&heads, words, 6));
    cr_assert_eq(heads.n, 2u);
    cr_expect_eq(heads.n_closed, 17u);
    const struct log_head *head = heads_find(&heads, "00000000000000aa", 0);
    cr_assert_not_null(head);
    cr_expect_eq(head->n, 12u);
    cr_expect_str_eq(head->era, "00000000000000e1");
    cr_expect_eq(head->time_ms, 1795187834000);
    cr_expect_eq(heads_find(&heads, "00000000000000bb", 0)->n, 0u);
    cr_expect_null(heads_find(&heads, "00000000000000cc", 1));
    heads_release(&heads);
}

/* What was read before is gone. */
Test(heads, that_are_none)
{
    static const char *const good[] = {"00000000000000aa", "12 00000000000000e1 1795187834000"};
    static const char *const bad[] = {"00000000000000aa", "12", "x", "12 0 1"};
    struct heads heads = {0};
    struct reply number = {.type = REPLY_INTEGER, .integer = 5};
    cr_assert(take(&heads, good, 2));
    cr_expect_not(take(&heads, bad, 2));
    cr_expect_eq(heads.n, 0u);
    cr_expect_not(take(&heads, bad + 2, 2));
    const char *const behind[] = {good[0], good[1], bad[0], bad[1]};
    cr_expect_not(take(&heads, behind, 4));
    cr_expect_eq(heads.n, 0u, "no part of a register");
    cr_expect_not(take(&heads, good, 1));
    cr_expect_eq(heads_add(&heads, 0, &number), STORAGE_REFUSED);
    cr_assert(take(&heads, good, 0));
    cr_expect_eq(heads.n, 0u);
    heads_release(&heads);
}

/* Of a cluster there is a register in each place. */
Test(heads, registers_of_several_places_are_one_list)
{
    struct heads heads = {0};
    struct reply one[2] = {text("00000000000000aa"), text("3 00000000000000ee 1000")};
    struct reply two[2] = {text("00000000000000bb"), text("5 00000000000000ee 2000")};
    struct reply first = {.type = REPLY_ARRAY, .items = one, .n = 2};
    struct reply second = {.type = REPLY_ARRAY, .items = two, .n = 2};
    cr_assert_eq(heads_add(&heads, 0, &first), STORAGE_OK);
    cr_assert_eq(heads_add(&heads, 7, &second), STORAGE_OK);
    cr_expect_eq(heads.n, 2u);
    cr_expect_eq(heads_find(&heads, "00000000000000aa", 0)->place, 0u);
    cr_expect_eq(heads_find(&heads, "00000000000000bb", 0)->place, 7u);
    cr_expect_eq(heads_find(&heads, "00000000000000bb", 0)->n, 5u);
    heads_release(&heads);
}

#include "storage/write/unit.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/lib/dice.h"

TestSuite(unit, .timeout = 60);

static bool take(struct part_unit *units, uint32_t n, const char *text)
{
    return part_units_take(units, n, slice_of(text));
}

Test(unit, what_the_script_says_becomes_marks)
{
    struct part_unit units[] = {{.unit = 1, .from = 0, .n = 10}, {.unit = 2, .from = 20, .n = 10},
        {.unit = 3, .from = 5, .n = 5}, {.unit = 4, .n = 1}, {.unit = 5, .n = 1}};
    cr_assert(take(units, 5, "5 L 4 O 3 10 2 23 1 0"));
    cr_expect_eq(units[4].mark, UNIT_LATE);
    cr_expect_eq(units[3].mark, UNIT_OTHER);
    cr_expect_eq(units[2].mark, UNIT_KNOWN);
    cr_expect_eq(units[1].mark, UNIT_OPEN);
    cr_expect_eq(units[1].skip, 3);
    cr_expect_eq(units[0].mark, UNIT_OPEN);
    cr_expect_eq(units[0].skip, 0);
    /* only the open ones are in the next script, and are counted anew */
    cr_assert(take(units, 5, "2 19"));
    cr_expect_eq(units[1].mark, UNIT_BEHIND);
    cr_assert(take(units, 5, "1 9999999"));
    cr_expect_eq(units[0].mark, UNIT_KNOWN);
    part_units_forget(units, 5);
    for (size_t i = 0; i < 5; i++) {
        cr_expect_eq(units[i].mark, UNIT_OPEN);
        cr_expect_eq(units[i].skip, 0);
    }
}

Test(unit, what_the_script_cannot_say_is_refused)
{
    static const char *const texts[] = {"", " ", "1", "1 ", "1  2", "0 1", "2 1", "1 X", "1 -1",
        "x 1", "1 1 ", "1 12345678", "1 1,2 1", "1 L1", "99999999 1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct part_unit unit = {.unit = 1, .n = 3};
        cr_expect_not(take(&unit, 1, texts[i]), "\"%s\"", texts[i]);
    }
}

Test(unit, marks_are_found_by_the_units_number)
{
    struct part_unit units[] = {{.unit = 3, .mark = UNIT_KNOWN}, {.unit = 7, .mark = UNIT_LATE}};
    cr_expect_eq(part_units_mark(units, 2, 3), UNIT_KNOWN);
    cr_expect_eq(part_units_mark(units, 2, 7), UNIT_LATE);
    cr_expect_eq(part_units_mark(units, 2, 5), UNIT_OPEN);
    cr_expect_eq(part_units_mark(NULL, 0, 5), UNIT_OPEN);
}

Test(unit, the_section_has_a_marker_to_set_for_each_open_unit)
{
    struct unit all[2] = {
        {.gen_ms = 1700000000123, .until_ms = 1700000600123}, {.gen_ms = 1, .until_ms = 2}};
    struct part_unit units[] = {
        {.unit = 1, .from = 20, .n = 10, .skip = 3}, {.unit = 2, .n = 1, .mark = UNIT_KNOWN}};
    struct buffer keys;
    struct buffer args;
    size_t n_keys = 4;
    size_t n_args = 4;
    memset(&all[0].key, 0xab, sizeof(all[0].key));
    memset(&all[0].body, 0, sizeof(all[0].body));
    struct partitions homes;
    partitions_make(1, &homes);
    buffer_init(&keys);
    buffer_init(&args);
    part_units_write(units, 2, all, "7", &homes, &keys, &n_keys, &args, &n_args);
    cr_expect_eq(n_keys, 6);
    cr_expect_eq(n_args, 9);
    static const char key[] = "$49\r\nt:{7}:once:claim:abababababababababababababababab\r\n"
                              "$44\r\nt:{0}:claim:abababababababababababababababab\r\n";
    cr_expect_eq(keys.n, sizeof(key) - 1);
    cr_expect_eq(memcmp(keys.p, key, sizeof(key) - 1), 0);
    static const char text[] =
        "$1\r\n1\r\n$1\r\n1\r\n$36\r\n17000000001230000030\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n"
        "$13\r\n1700000600123\r\n$2\r\n23\r\n";
    cr_expect_eq(args.n, sizeof(text) - 1);
    cr_expect_eq(memcmp(args.p, text, sizeof(text) - 1), 0);
    buffer_release(&keys);
    buffer_release(&args);
}

/* A marker as write.lua keeps it, and attempts that cut the tasks of one unit into parts as they
 * like, lose parts, and come one after the other or interleaved: each task is applied once. */
#define TASKS    40
#define ATTEMPTS 3

struct attempt {
    uint32_t from; /* where its next part begins */
};

static void apply_part(struct dice *dice, struct attempt *attempt, uint32_t *marker, int *applied)
{
    struct part_unit unit = {.unit = 1,
        .from = attempt->from,
        .n = 1 + (uint32_t)dice_below(dice, (int64_t)TASKS - attempt->from)};
    for (int tries = 0; unit.mark == UNIT_OPEN; tries++) {
        cr_assert(tries < 3, "no end");
        if (*marker != unit.from + unit.skip) { /* the script */
            char text[32];
            (void)snprintf(text, sizeof(text), "1 %u", *marker);
            cr_assert(take(&unit, 1, text));
            continue;
        }
        struct unit_cursor cursor = {0};
        for (uint32_t i = 0; i < unit.n; i++) {
            if (part_units_pass(&unit, 1, &cursor, 1)) {
                applied[unit.from + i]++;
            }
        }
        *marker = unit.from + unit.n;
        unit.mark = UNIT_KNOWN;
    }
    cr_assert_neq(unit.mark, UNIT_BEHIND);
    attempt->from += unit.n;
}

Test(unit, attempts_that_cut_differently_apply_each_task_once)
{
    struct dice dice = dice_make(dice_seed());
    for (int round = 0; round < 3000; round++) {
        struct attempt attempts[ATTEMPTS] = {0};
        int applied[TASKS] = {0};
        uint32_t marker = 0;
        while (attempts[0].from < TASKS) {
            int64_t who = dice_below(&dice, ATTEMPTS);
            if (attempts[who].from < TASKS) {
                apply_part(&dice, &attempts[who], &marker, applied);
            }
        }
        for (int i = 0; i < TASKS; i++) {
            cr_assert_eq(
                applied[i], 1, "round %d: task %d was applied %d times", round, i, applied[i]);
        }
        cr_assert_eq(marker, TASKS);
    }
}

Test(unit, direct_ones_have_no_marker_and_are_never_open_again)
{
    struct part_unit units[] = {{.unit = 1, .n = 1, .mark = UNIT_DIRECT}, {.unit = 2, .n = 1}};
    struct unit all[2] = {{.gen_ms = 1}, {.gen_ms = 1}};
    struct buffer keys;
    struct buffer args;
    size_t n_keys = 0;
    size_t n_args = 0;
    buffer_init(&keys);
    buffer_init(&args);
    part_units_write(units, 2, all, "1", NULL, &keys, &n_keys, &args, &n_args);
    cr_expect_eq(n_keys, 1);
    struct unit_cursor cursor = {0};
    cr_expect(part_units_pass(units, 2, &cursor, 1));
    cr_expect(part_units_pass(units, 2, &cursor, 2));
    part_units_set(units, 2, 1, UNIT_GONE);
    part_units_forget(units, 2);
    cr_expect_eq(part_units_mark(units, 2, 1), UNIT_GONE);
    cursor = (struct unit_cursor){0};
    cr_expect_not(part_units_pass(units, 2, &cursor, 1));
    cr_expect(part_units_pass(units, 2, &cursor, 2));
    cr_assert(take(units, 2, "1 1")); /* the first open one */
    cr_expect_eq(units[1].mark, UNIT_KNOWN);
    buffer_release(&keys);
    buffer_release(&args);
}

Test(unit, rows_without_a_unit_pass_and_others_by_their_place)
{
    struct part_unit units[] = {
        {.unit = 1, .n = 2, .mark = UNIT_KNOWN}, {.unit = 4, .n = 3, .skip = 2}};
    static const uint32_t rows[] = {0, 1, 1, 0, 4, 4, 4, 0};
    static const bool pass[] = {true, false, false, true, false, false, true, true};
    struct unit_cursor cursor = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_eq(part_units_pass(units, 2, &cursor, rows[i]), pass[i], "row %zu", i);
    }
}

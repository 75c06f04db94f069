#include "storage/write/lane.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>

TestSuite(lane, .timeout = 60);

#define PARTS 6

/* A lane, and parts that a scenario calls 0, 1, 2.. */
struct scene {
    struct lane lane;
    struct part parts[PARTS];
    char first_id[WRITER_ID_TEXT + 1];
};

static void set_up(struct scene *s, size_t n)
{
    memset(s, 0, sizeof(*s));
    lane_init(&s->lane);
    memcpy(s->first_id, s->lane.writer_id, sizeof(s->first_id));
    for (size_t i = 0; i < n; i++) {
        lane_append(&s->lane, &s->parts[i]);
    }
}

static int next_number(const struct scene *s)
{
    const struct part *part = lane_next(&s->lane);
    return part == NULL ? -1 : (int)(part - s->parts);
}

/* Send all that may be sent: exactly the parts @..., ended by -1, in this order. */
static void check_sends(struct scene *s, int line, ...)
{
    va_list numbers;
    int expected;
    va_start(numbers, line);
    while ((expected = va_arg(numbers, int)) >= 0) {
        cr_assert_eq(next_number(s), expected, "line %d: part %d is next, not %d", line,
            next_number(s), expected);
        lane_sent(&s->lane, &s->parts[expected]);
    }
    va_end(numbers);
    cr_assert_eq(next_number(s), -1, "line %d: part %d is sent too", line, next_number(s));
}
#define CHECK_SENDS(...)      check_sends(&s, __LINE__, __VA_ARGS__, -1)
#define CHECK_SENDS_NOTHING() check_sends(&s, __LINE__, -1)

static void answer(struct scene *s, int number, enum part_answer answer)
{
    lane_answered(&s->lane, &s->parts[number], answer);
}

static void check_place(const struct scene *s, int line, int number, uint64_t era, uint64_t seq)
{
    const struct part *part = &s->parts[number];
    cr_expect_eq(
        part->era, era, "line %d: part %d is of era %u", line, number, (unsigned)part->era);
    cr_expect_eq(
        part->seq, seq, "line %d: part %d has number %u", line, number, (unsigned)part->seq);
    cr_expect_eq(strcmp(part->writer_id, s->first_id) == 0, era == 1, "line %d", line);
}
#define CHECK_PLACE(number, era, seq) check_place(&s, __LINE__, number, era, seq)

static void check_state(const struct scene *s, int line, int number, enum part_state state)
{
    cr_expect_eq(s->parts[number].state, state, "line %d: part %d is in state %d", line, number,
        (int)s->parts[number].state);
}
#define CHECK_STATE(number, state) check_state(&s, __LINE__, number, state)

/* ---- the ordinary course ---- */

Test(lane, names_parts_by_id_and_number)
{
    struct scene s;
    set_up(&s, 3);
    cr_expect_eq(strlen(s.first_id), (size_t)WRITER_ID_TEXT);
    cr_expect_eq(strspn(s.first_id, "0123456789abcdef"), (size_t)WRITER_ID_TEXT);
    for (int i = 0; i < 3; i++) {
        CHECK_PLACE(i, 1, (uint64_t)i + 1);
        CHECK_STATE(i, PART_HELD);
        cr_expect_not(s.parts[i].in_doubt);
    }
}

Test(lane, ids_differ)
{
    struct lane a;
    struct lane b;
    lane_init(&a);
    lane_init(&b);
    cr_expect_str_neq(a.writer_id, b.writer_id);
}

Test(lane, empty_has_nothing_to_send)
{
    struct scene s;
    set_up(&s, 0);
    CHECK_SENDS_NOTHING();
    lane_lost(&s.lane);
    CHECK_SENDS_NOTHING();
}

Test(lane, two_under_way_in_order)
{
    struct scene s;
    set_up(&s, 5);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK);
    CHECK_SENDS(2);
    answer(&s, 1, ANSWER_OK);
    answer(&s, 2, ANSWER_OK);
    CHECK_SENDS(3, 4);
    answer(&s, 3, ANSWER_OK);
    answer(&s, 4, ANSWER_OK);
    CHECK_SENDS_NOTHING();
    for (int i = 0; i < 5; i++) {
        CHECK_STATE(i, PART_OK);
        CHECK_PLACE(i, 1, (uint64_t)i + 1);
        lane_remove(&s.lane, &s.parts[i]);
    }
    cr_expect_null(s.lane.first);
    cr_expect_null(s.lane.last);
}

Test(lane, sends_nothing_twice_on_a_connection)
{
    struct scene s;
    set_up(&s, 1);
    CHECK_SENDS(0);
    CHECK_SENDS_NOTHING();
    answer(&s, 0, ANSWER_OK);
    CHECK_SENDS_NOTHING();
}

/* ---- nothing done: again ---- */

Test(lane, replan_on_the_first_of_two)
{
    struct scene s;
    set_up(&s, 3);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_AGAIN);
    CHECK_SENDS(0); /* behind the first copy of 1 */
    answer(&s, 1, ANSWER_GAP);
    CHECK_SENDS(1); /* in order again */
    answer(&s, 0, ANSWER_OK);
    answer(&s, 1, ANSWER_OK);
    CHECK_SENDS(2);
    CHECK_PLACE(0, 1, 1);
    CHECK_PLACE(1, 1, 2);
    CHECK_PLACE(2, 1, 3);
    cr_expect_not(s.parts[0].in_doubt || s.parts[1].in_doubt);
}

/* Both replies were read before anything was sent. */
Test(lane, replan_on_both)
{
    struct scene s;
    set_up(&s, 2);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_AGAIN);
    answer(&s, 1, ANSWER_GAP);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_AGAIN);
    answer(&s, 1, ANSWER_AGAIN);
    CHECK_SENDS(0, 1);
    CHECK_PLACE(1, 1, 2);
}

Test(lane, replan_on_the_second_of_two)
{
    struct scene s;
    set_up(&s, 3);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK);
    CHECK_SENDS(2);
    answer(&s, 1, ANSWER_AGAIN);
    CHECK_SENDS(1);
    answer(&s, 2, ANSWER_GAP); /* 1 is not answered: not final */
    CHECK_SENDS(2);
    answer(&s, 1, ANSWER_OK);
    answer(&s, 2, ANSWER_OK);
    CHECK_PLACE(2, 1, 3);
}

/* A copy of a lost connection applied 0 between its two replies here. */
Test(lane, ok_behind_an_unanswered_one)
{
    struct scene s;
    set_up(&s, 2);
    CHECK_SENDS(0, 1);
    lane_lost(&s.lane);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_AGAIN);
    answer(&s, 1, ANSWER_OK);
    CHECK_SENDS(0);
    CHECK_STATE(1, PART_OK);
    answer(&s, 0, ANSWER_OK);
    CHECK_SENDS_NOTHING();
    CHECK_PLACE(0, 1, 1);
}

/* ---- GAP ---- */

Test(lane, gap_behind_an_unanswered_one_is_not_final)
{
    struct scene s;
    set_up(&s, 2);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_AGAIN);
    answer(&s, 1, ANSWER_GAP);
    CHECK_STATE(1, PART_HELD);
    CHECK_PLACE(0, 1, 1);
    CHECK_PLACE(1, 1, 2);
    cr_expect_eq(s.lane.era, 1u);
}

Test(lane, final_gap_moves_all_unanswered_to_a_new_id)
{
    struct scene s;
    set_up(&s, 4);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK); /* and then the marker was gone */
    CHECK_SENDS(2);
    answer(&s, 1, ANSWER_GAP);
    CHECK_PLACE(0, 1, 1);
    CHECK_PLACE(1, 2, 1);
    CHECK_PLACE(2, 2, 2);
    CHECK_PLACE(3, 2, 3);
    CHECK_STATE(0, PART_OK);
    cr_expect_str_eq(s.parts[3].writer_id, s.lane.writer_id);
    lane_append(&s.lane, &s.parts[4]);
    CHECK_PLACE(4, 2, 4);
    CHECK_SENDS(1); /* 2 is still under way, under the dead id */
}

Test(lane, gap_of_a_copy_under_a_dead_id_frees_it)
{
    struct scene s;
    set_up(&s, 3);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_GAP);
    CHECK_SENDS(0);
    answer(&s, 1, ANSWER_GAP);
    CHECK_PLACE(1, 2, 2);
    CHECK_SENDS(1);
    answer(&s, 0, ANSWER_OK);
    answer(&s, 1, ANSWER_OK);
    CHECK_SENDS(2);
    CHECK_PLACE(2, 2, 3);
    cr_expect_eq(s.lane.era, 2u);
}

/* The same, with nobody of the new id before it: still no GAP of the new id. */
Test(lane, gap_of_a_copy_under_a_dead_id_is_never_final)
{
    struct scene s;
    set_up(&s, 2);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_GAP);
    lane_remove(&s.lane, &s.parts[0]); /* its client waits no longer */
    answer(&s, 1, ANSWER_GAP);
    CHECK_PLACE(1, 2, 2);
    cr_expect_eq(s.lane.era, 2u);
    CHECK_SENDS(1);
    answer(&s, 1, ANSWER_GAP); /* that one is: 0 left a hole */
    CHECK_PLACE(1, 3, 1);
}

/* Parts of two ids: those of the older one, once it is dead, go behind under the newer. */
Test(lane, final_gap_of_an_older_id_moves_to_the_newer)
{
    struct scene s;
    set_up(&s, 4);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK);
    answer(&s, 1, ANSWER_GAP);
    CHECK_SENDS(1, 2);
    answer(&s, 1, ANSWER_OK);
    answer(&s, 2, ANSWER_OK);
    lane_lost(&s.lane); /* and Redis went back to before all of it */
    CHECK_SENDS(0, 1);
    CHECK_PLACE(0, 1, 1);
    answer(&s, 0, ANSWER_GAP);
    CHECK_PLACE(1, 2, 1);
    CHECK_PLACE(2, 2, 2);
    CHECK_PLACE(3, 2, 3);
    CHECK_PLACE(0, 2, 4);
    cr_expect_eq(s.lane.era, 2u, "no third id");
    answer(&s, 1, ANSWER_OK);
    CHECK_SENDS(2, 3);
    answer(&s, 2, ANSWER_OK);
    CHECK_SENDS(0);
}

/* Final is what is first among those of its id, whatever the other id waits for. */
Test(lane, final_gap_of_the_newer_id_beside_an_older)
{
    struct scene s;
    set_up(&s, 3);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK);
    answer(&s, 1, ANSWER_GAP);
    CHECK_SENDS(1, 2);
    lane_lost(&s.lane);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_AGAIN);
    answer(&s, 1, ANSWER_GAP);
    CHECK_PLACE(0, 1, 1);
    CHECK_PLACE(1, 3, 1);
    CHECK_PLACE(2, 3, 2);
    CHECK_SENDS(0, 1);
}

/* ---- a lost connection ---- */

Test(lane, lost_sends_all_unacknowledged_again_under_the_same_numbers)
{
    struct scene s;
    set_up(&s, 4);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK); /* its flush waits for another partition */
    CHECK_SENDS(2);
    lane_lost(&s.lane);
    cr_expect_eq(s.lane.n_sent, 0u);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK);
    answer(&s, 1, ANSWER_OK);
    CHECK_SENDS(2, 3);
    for (int i = 0; i < 4; i++) {
        CHECK_PLACE(i, 1, (uint64_t)i + 1);
    }
}

Test(lane, lost_leaves_in_doubt_what_was_sent)
{
    struct scene s;
    set_up(&s, 4);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK);
    answer(&s, 1, ANSWER_AGAIN); /* its only copy did nothing */
    CHECK_SENDS(1, 2);
    answer(&s, 1, ANSWER_AGAIN);
    lane_lost(&s.lane);
    cr_expect(s.parts[0].in_doubt, "answered, but Redis may have gone back");
    cr_expect_not(s.parts[1].in_doubt);
    cr_expect(s.parts[2].in_doubt);
    cr_expect_not(s.parts[3].in_doubt, "never sent");
}

Test(lane, lost_does_not_revive_what_is_over)
{
    struct scene s;
    set_up(&s, 2);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_REFUSED);
    lane_lost(&s.lane);
    CHECK_STATE(0, PART_OVER);
    CHECK_SENDS(1);
}

/* ---- the ends but OK ---- */

Test(lane, refused_part_leaves_a_hole)
{
    static const struct {
        enum part_answer answer;
        enum part_fate fate;
    } cases[] = {{ANSWER_REFUSED, FATE_REFUSED}, {ANSWER_OOM, FATE_OOM}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene s;
        set_up(&s, 3);
        CHECK_SENDS(0, 1);
        answer(&s, 0, cases[i].answer);
        CHECK_STATE(0, PART_OVER);
        cr_expect_eq(s.parts[0].fate, cases[i].fate, "case %zu", i);
        CHECK_SENDS(2);
        answer(&s, 1, ANSWER_GAP); /* nobody will fill the hole */
        CHECK_PLACE(1, 2, 1);
        CHECK_PLACE(2, 2, 2);
        CHECK_PLACE(0, 1, 1);
        CHECK_SENDS(1);
        answer(&s, 2, ANSWER_GAP);
        answer(&s, 1, ANSWER_OK);
        CHECK_SENDS(2);
    }
}

Test(lane, refused_in_doubt_is_held)
{
    static const enum part_answer answers[] = {ANSWER_REFUSED, ANSWER_OOM};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct scene s;
        set_up(&s, 1);
        CHECK_SENDS(0);
        lane_lost(&s.lane);
        CHECK_SENDS(0);
        answer(&s, 0, answers[i]);
        CHECK_STATE(0, PART_HELD);
        cr_expect_eq(s.parts[0].fate, FATE_NONE);
        CHECK_SENDS(0);
        answer(&s, 0, ANSWER_OK);
        CHECK_STATE(0, PART_OK);
    }
}

Test(lane, stale_and_failed_are_unknown)
{
    static const enum part_answer answers[] = {ANSWER_STALE, ANSWER_FAILED};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct scene s;
        set_up(&s, 2);
        CHECK_SENDS(0, 1);
        answer(&s, 0, answers[i]);
        CHECK_STATE(0, PART_OVER);
        cr_expect_eq(s.parts[0].fate, FATE_UNKNOWN);
        lane_lost(&s.lane);
        CHECK_STATE(0, PART_OVER);
        CHECK_SENDS(1);
        CHECK_PLACE(1, 1, 2);
    }
}

/* STALE leaves a hole if it never ran, and none if it did: the next one finds out. */
Test(lane, behind_a_stale_one)
{
    struct scene s;
    set_up(&s, 3);
    CHECK_SENDS(0, 1);
    lane_lost(&s.lane);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_STALE);
    answer(&s, 1, ANSWER_OK);
    CHECK_PLACE(1, 1, 2);
    CHECK_SENDS(2);
    answer(&s, 2, ANSWER_OK);
    CHECK_PLACE(2, 1, 3);

    set_up(&s, 2);
    CHECK_SENDS(0, 1);
    lane_lost(&s.lane);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_STALE);
    answer(&s, 1, ANSWER_GAP);
    CHECK_PLACE(1, 2, 1);
    CHECK_SENDS(1);
}

/* ---- removal ---- */

Test(lane, removal_keeps_the_list)
{
    static const int orders[][3] = {
        {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct scene s;
        set_up(&s, 3);
        bool gone[4] = {false};
        for (int k = 0; k < 3; k++) {
            lane_remove(&s.lane, &s.parts[orders[i][k]]);
            gone[orders[i][k]] = true;
            const struct part *p = s.lane.first;
            for (int number = 0; number < 3; number++) {
                if (!gone[number]) {
                    cr_assert_eq(p, &s.parts[number], "order %zu, step %d", i, k);
                    p = p->next;
                }
            }
            cr_assert_null(p);
        }
        cr_expect_null(s.lane.first);
        cr_expect_null(s.lane.last);
        lane_append(&s.lane, &s.parts[3]);
        cr_expect_eq(s.lane.first, &s.parts[3]);
        cr_expect_eq(s.lane.last, &s.parts[3]);
        CHECK_PLACE(3, 1, 4);
    }
}

/* Held and never in doubt: its client gave up.  Its number stays unused. */
Test(lane, removal_of_a_held_part_leaves_a_hole)
{
    struct scene s;
    set_up(&s, 3);
    lane_remove(&s.lane, &s.parts[0]);
    CHECK_SENDS(1, 2);
    answer(&s, 1, ANSWER_GAP);
    CHECK_PLACE(1, 2, 1);
    CHECK_PLACE(2, 2, 2);
    answer(&s, 2, ANSWER_GAP);
    CHECK_SENDS(1, 2);
}

/* The predecessors are acknowledged and gone; then the marker is lost. */
Test(lane, gap_after_all_before_it_were_removed)
{
    struct scene s;
    set_up(&s, 2);
    CHECK_SENDS(0, 1);
    answer(&s, 0, ANSWER_OK);
    lane_remove(&s.lane, &s.parts[0]);
    lane_lost(&s.lane);
    CHECK_SENDS(1);
    answer(&s, 1, ANSWER_GAP);
    CHECK_PLACE(1, 2, 1);
    CHECK_SENDS(1);
}

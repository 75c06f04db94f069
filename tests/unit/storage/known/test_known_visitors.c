#include "storage/known/known_visitors.h"

#include <criterion/criterion.h>
#include <pthread.h>

#include "tests/lib/dice.h"

/* Whom to expect among the visits: a guess, that errs seldom. */
TestSuite(known_visitors, .timeout = 60);

#define SLOT 498663 /* of 2026-11-20 */

static struct visitor_id draw(struct dice *dice)
{
    struct visitor_id id;
    for (size_t i = 0; i < sizeof(id.bytes); i++) {
        id.bytes[i] = (uint8_t)dice_below(dice, 256);
    }
    return id;
}

Test(known_visitors, one_user)
{
    struct dice dice = dice_make(1);
    struct known_visitors known;
    known_visitors_init(&known);
    struct visitor_id id = draw(&dice);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT), VISIT_ANYWHERE);
    known_visitors_drop(&known, &id);
    known_visitors_forget(&known);
    known_visitors_add(&known, &id, SLOT);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT), VISIT_IN_SLOT);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT + 1), VISIT_IN_SLOT_BEFORE);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT), VISIT_IN_SLOT, "a clock that steps back");
    cr_expect_eq(known_visitors_find(&known, &id, SLOT - 1), VISIT_ANYWHERE);
    known_visitors_add(&known, &id, SLOT + 1);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT), VISIT_ANYWHERE, "one mark a user");
    cr_expect_eq(known_visitors_find(&known, &id, SLOT + 2), VISIT_IN_SLOT_BEFORE);
    known_visitors_drop(&known, &id);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT + 2), VISIT_ANYWHERE);
    known_visitors_add(&known, &id, SLOT + 2);
    known_visitors_forget(&known);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT + 2), VISIT_ANYWHERE);
    known_visitors_release(&known);
    cr_expect_eq(known_visitors_find(&known, &id, SLOT), VISIT_ANYWHERE);
    known_visitors_add(&known, &id, SLOT); /* as where there is no memory */
    known_visitors_drop(&known, &id);
    known_visitors_forget(&known);
}

/* Two bits tell slots apart, so a mark is gone before another slot looks like its own: three slots
 * later.  With every step all marks are walked over, so there are few steps. */
Test(known_visitors, a_mark_ends_with_its_slot)
{
    struct dice dice = dice_make(4);
    for (int64_t slots = 2; slots < 26; slots++) {
        struct visitor_id id = draw(&dice);
        struct visitor_id other = draw(&dice);
        struct known_visitors known;
        bool comes_each_slot = slots % 2 == 0;
        known_visitors_init(&known);
        known_visitors_add(&known, &id, SLOT);
        for (int64_t i = 1; comes_each_slot && i < slots; i++) {
            known_visitors_add(&known, &other, SLOT + i);
        }
        cr_expect_eq(known_visitors_find(&known, &id, SLOT + slots), VISIT_ANYWHERE);
        cr_expect_eq(known_visitors_find(&known, &other, SLOT + slots),
            comes_each_slot ? VISIT_IN_SLOT_BEFORE : VISIT_ANYWHERE);
        known_visitors_add(&known, &id, SLOT + slots - 2);
        cr_expect_eq(known_visitors_find(&known, &id, SLOT + slots + 1), VISIT_ANYWHERE, "of old");
        known_visitors_release(&known);
    }
}

Test(known_visitors, the_first_slot_of_all)
{
    const struct visitor_id zeros = {{0}};
    struct known_visitors known;
    known_visitors_init(&known);
    cr_expect_eq(known_visitors_find(&known, &zeros, 0), VISIT_ANYWHERE);
    known_visitors_add(&known, &zeros, 0);
    cr_expect_eq(known_visitors_find(&known, &zeros, 0), VISIT_IN_SLOT);
    cr_expect_eq(known_visitors_find(&known, &zeros, 1), VISIT_IN_SLOT_BEFORE);
    known_visitors_drop(&known, &zeros);
    cr_expect_eq(known_visitors_find(&known, &zeros, 1), VISIT_ANYWHERE);
    known_visitors_release(&known);
}

struct learner {
    struct known_visitors *known;
    struct visitor_id ids[20000];
};

static void *learn(void *data)
{
    struct learner *l = data;
    for (size_t i = 0; i < sizeof(l->ids) / sizeof(l->ids[0]); i++) {
        known_visitors_add(l->known, &l->ids[i], SLOT);
    }
    return NULL;
}

Test(known_visitors, what_threads_learn_all_of_them_know)
{
    static struct learner learners[3];
    struct dice dice = dice_make(3);
    struct known_visitors known;
    pthread_t threads[3];
    size_t n = 0;
    known_visitors_init(&known);
    (void)known_visitors_find(&known, &learners[0].ids[0], SLOT); /* else one begins the slot */
    for (size_t t = 0; t < 3; t++) {
        learners[t].known = &known;
        for (size_t i = 0; i < 20000; i++) {
            learners[t].ids[i] = draw(&dice);
        }
        cr_assert_eq(pthread_create(&threads[t], NULL, learn, &learners[t]), 0);
    }
    for (size_t t = 0; t < 3; t++) {
        cr_assert_eq(pthread_join(threads[t], NULL), 0);
    }
    for (size_t i = 0; i < 60000; i++) {
        n +=
            known_visitors_find(&known, &learners[i / 20000].ids[i % 20000], SLOT) == VISIT_IN_SLOT;
    }
    cr_expect_gt(n, 60000u * 99 / 100, "%zu", n);
    known_visitors_release(&known);
}

Test(known_visitors, many_users)
{
    static struct visitor_id ids[KNOWN_VISITORS / 5];
    const size_t many = sizeof(ids) / sizeof(ids[0]);
    struct dice dice = dice_make(2);
    struct known_visitors known;
    known_visitors_init(&known);
    size_t n = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < many; i++) {
        ids[i] = draw(&dice);
        known_visitors_add(&known, &ids[i], SLOT);
    }
    for (size_t i = 0; i < many; i++) {
        struct visitor_id other = draw(&dice);
        n += known_visitors_find(&known, &ids[i], SLOT) == VISIT_IN_SLOT;
        wrong += known_visitors_find(&known, &other, SLOT) != VISIT_ANYWHERE;
    }
    cr_expect_gt(n, many * 99 / 100, "%zu", n);
    cr_expect_lt(wrong, 30u, "%zu", wrong);
    known_visitors_release(&known);
}

#include "storage/known/known_visitors.h"

#include <criterion/criterion.h>

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
    struct known_visitors known = {0};
    struct visitor_id id = draw(&dice);
    cr_expect_not(known_visitors_has(&known, &id, SLOT));
    known_visitors_drop(&known, &id);
    known_visitors_forget(&known);
    known_visitors_add(&known, &id, SLOT);
    cr_expect(known_visitors_has(&known, &id, SLOT));
    cr_expect(known_visitors_has(&known, &id, SLOT + 1));
    cr_expect_not(known_visitors_has(&known, &id, SLOT + 2), "it has expired");
    cr_expect_not(known_visitors_has(&known, &id, SLOT + 24), "on the next day");
    cr_expect_not(known_visitors_has(&known, &id, SLOT - 1));
    known_visitors_add(&known, &id, SLOT + 1);
    cr_expect(known_visitors_has(&known, &id, SLOT + 2));
    cr_expect_not(known_visitors_has(&known, &id, SLOT), "one mark a user");
    known_visitors_drop(&known, &id);
    cr_expect_not(known_visitors_has(&known, &id, SLOT + 1));
    known_visitors_add(&known, &id, SLOT);
    known_visitors_forget(&known);
    cr_expect_not(known_visitors_has(&known, &id, SLOT));
    known_visitors_release(&known);
}

Test(known_visitors, many_users)
{
    static struct visitor_id ids[KNOWN_VISITORS / 5];
    const size_t many = sizeof(ids) / sizeof(ids[0]);
    struct dice dice = dice_make(2);
    struct known_visitors known = {0};
    size_t n = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < many; i++) {
        ids[i] = draw(&dice);
        known_visitors_add(&known, &ids[i], SLOT);
    }
    for (size_t i = 0; i < many; i++) {
        struct visitor_id other = draw(&dice);
        n += known_visitors_has(&known, &ids[i], SLOT);
        wrong += known_visitors_has(&known, &other, SLOT);
    }
    cr_expect_gt(n, many * 99 / 100, "%zu", n);
    cr_expect_lt(wrong, 30u, "%zu", wrong);
    known_visitors_release(&known);
}

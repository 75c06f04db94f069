#include "storage/schema/first_note.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/lib/dice.h"

TestSuite(first_note, .timeout = 60);

static bool next(struct slice *text, struct first_event *event)
{
    static struct slice actions[EVENT_ACTIONS_MAX];
    return first_note_next(text, event, actions);
}

Test(first_note, lines_come_back)
{
    static const struct slice names[] = {{"checkin", 7}, {"a", 1}, {"x.y:z-_", 7}};
    static const uint32_t indices[] = {0, 7, 999, 10000, UINT32_MAX};
    struct dice dice = dice_make(dice_seed());
    for (int round = 0; round < 500; round++) {
        struct slice actions[5][EVENT_ACTIONS_MAX];
        unsigned n_actions[5];
        struct buffer note;
        buffer_init(&note);
        for (unsigned i = 0; i < 5; i++) {
            n_actions[i] = 1 + (unsigned)dice_below(&dice, EVENT_ACTIONS_MAX);
            for (unsigned a = 0; a < n_actions[i]; a++) {
                actions[i][a] = names[dice_below(&dice, 3)];
            }
            first_note_put(&note, indices[i], actions[i], n_actions[i]);
        }
        struct slice left = {note.p, note.n};
        struct first_event event;
        for (unsigned i = 0; i < 5; i++) {
            cr_assert(next(&left, &event));
            cr_assert(event.index == indices[i] && event.n_actions == n_actions[i]);
            for (unsigned a = 0; a < n_actions[i]; a++) {
                cr_assert(slice_equal(event.actions[a], actions[i][a]));
            }
        }
        cr_assert(!next(&left, &event) && left.n == 0);
        buffer_release(&note);
    }
}

Test(first_note, one_looks_like_this)
{
    static const struct slice actions[] = {{"checkin", 7}, {"share", 5}};
    struct buffer note;
    buffer_init(&note);
    first_note_put(&note, 12, actions, 2);
    first_note_put(&note, 3, actions, 1);
    cr_expect(slice_equal((struct slice){note.p, note.n}, SLICE("12 checkin share\n3 checkin\n")));
    buffer_release(&note);
}

static const char *const foreign[] = {"\n", "x\n", "1\n", "1 \n", " a\n", "1  a\n", "1 a \n",
    "-1 a\n", "+1 a\n", "4294967296 a\n", "99999999999 a\n", "1 a", "1", "1 a b c d e f g h i\n",
    "1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"};

Test(first_note, what_is_none_is_not_read)
{
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        struct slice text = slice_of(foreign[i]);
        struct first_event event;
        cr_expect(!next(&text, &event) && text.n == strlen(foreign[i]), "%s", foreign[i]);
        char behind[100];
        (void)snprintf(behind, sizeof(behind), "5 a\n%s", foreign[i]);
        text = slice_of(behind);
        cr_expect(next(&text, &event) && event.index == 5 && !next(&text, &event) && text.n > 0,
            "%s behind a line", foreign[i]);
    }
}

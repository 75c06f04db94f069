#include "storage/merge/merge_first.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/known/known_users.h"
#include "storage/schema/first_note.h"
#include "tests/lib/commands.h"
#include "tests/lib/dice.h"
#include "tests/lib/row_sites.h"

TestSuite(merge_first, .timeout = 60);

#define TAG       "7"
#define USERS     6
#define DAYS      3
#define ACTIONS   4
#define TICKETS   5
#define ROWS      40
#define FIRST_DAY 20000
#define DAY_S     86400

static const struct slice actions[ACTIONS] = {
    {"active", 6}, {"checkin", 7}, {"share", 5}, {"a:20241004", 10}};
static const uint8_t tickets[TICKETS][16] = {{1}, {2}, {3}, {4}, {5}};

/* What Redis has, and a user's index: none for the last two. */
static bool bits[USERS][ACTIONS][DAYS];

static uint32_t index_of(size_t user)
{
    return user < USERS - 2 ? (uint32_t)(10 * user) : USER_INDEX_NONE;
}

/* Row @i of a share: random but for its number and, at times, its ticket. */
struct drawn {
    struct row row;
    struct slice actions[EVENT_ACTIONS_MAX];
    size_t user, day;
    bool is_counted; /* no cursor says that it was counted before */
};

static void draw(struct dice *dice, uint32_t i, size_t ticket, struct drawn *ret)
{
    *ret = (struct drawn){.user = (size_t)dice_below(dice, USERS),
        .day = (size_t)dice_below(dice, DAYS),
        .is_counted = dice_chance(dice, 900)};
    ret->row = (struct row){.site = row_site_of("shop"),
        .at_s = (int64_t)(FIRST_DAY + ret->day) * DAY_S,
        .n_actions = (uint8_t)dice_below(dice, EVENT_ACTIONS_MAX + 1),
        .ticket = dice_chance(dice, 700) ? tickets[ticket] : NULL,
        .has_key = ticket % 2 == 0,
        .index = i};
    memcpy(ret->row.user_id.bytes, &ret->user, sizeof(ret->user));
    for (unsigned a = 0; a < ret->row.n_actions; a++) {
        ret->actions[a] = actions[dice_below(dice, ACTIONS)];
    }
    ret->row.actions = ret->actions;
}

static size_t action_of(struct slice name)
{
    for (size_t a = 0; a < ACTIONS; a++) {
        if (slice_equal(name, actions[a])) {
            return a;
        }
    }
    cr_assert_fail("an action");
    return 0;
}

/* Redis answers the questions: GETBIT of a bitmap, once each. */
static void answer(struct merge_first *merge)
{
    struct buffer out;
    struct commands questions;
    bool asked[USERS][ACTIONS][DAYS] = {{{false}}};
    buffer_init(&out);
    size_t n = merge_first_write_questions(merge, TAG, &out);
    cr_assert(commands_read(&out, &questions) && questions.n == n);
    for (size_t i = 0; i < n; i++) {
        const struct command *c = &questions.commands[i];
        cr_assert(command_is(c, 0, "GETBIT") && c->n == 3);
        size_t user = (size_t)command_number(c, 2) / 10;
        bool found = false;
        for (size_t a = 1; a < ACTIONS && !found; a++) {
            for (size_t d = 0; d < DAYS && !found; d++) {
                char key[100];
                struct civil_date date = civil_from_days((int64_t)(FIRST_DAY + d));
                (void)snprintf(key, sizeof(key), "t:{" TAG "}:act:shop:%s:%04d%02d%02d",
                    actions[a].p, (int)date.year, date.month, date.day);
                found = command_is(c, 1, key);
                if (found) {
                    struct reply reply = {.type = REPLY_INTEGER, .integer = bits[user][a][d]};
                    cr_assert(!asked[user][a][d], "asked twice");
                    asked[user][a][d] = true;
                    cr_assert(merge_first_take(merge, i, &reply));
                }
            }
        }
        cr_assert(found, "%.*s", (int)c->words[1].n, c->words[1].p);
    }
    struct reply foreign = {.type = REPLY_ARRAY};
    cr_assert(
        !merge_first_take(merge, n, &foreign) && (n == 0 || !merge_first_take(merge, 0, &foreign)));
    commands_release(&questions);
    buffer_release(&out);
}

/* By the model: the line of a row, "" if it was not first.  Sets the bits. */
static void line_of(const struct drawn *d, char ret[200])
{
    size_t n = 0;
    ret[0] = '\0';
    for (unsigned i = 0; i < d->row.n_actions; i++) {
        size_t a = action_of(d->actions[i]);
        if (a > 0 && !bits[d->user][a][d->day]) {
            if (n == 0) {
                n = (size_t)snprintf(ret, 200, "%u", d->row.index);
            }
            n += (size_t)snprintf(ret + n, 200 - n, " %s", actions[a].p);
        }
        bits[d->user][a][d->day] = true;
    }
    if (d->row.ticket == NULL || n == 0) {
        ret[0] = '\0';
    } else {
        (void)snprintf(ret + n, 200 - n, "\n");
    }
}

/* What the commands append to each ticket's note is what the model expects. */
static void check_commands(const struct merge_first *merge, char expected[TICKETS][8000])
{
    struct buffer out;
    struct commands commands;
    size_t lines = 0;
    buffer_init(&out);
    size_t n = merge_first_write(merge, TAG, &out);
    cr_assert(commands_read(&out, &commands) && commands.n == n);
    for (size_t i = 0; i < n; i += 2) {
        const struct command *append = &commands.commands[i];
        const struct command *expire = &commands.commands[i + 1];
        cr_assert(command_is(append, 0, "APPEND") && command_is(expire, 0, "PEXPIRE"));
        cr_assert(slice_equal(append->words[1], expire->words[1]));
        size_t t = 0;
        for (char key[64]; t < TICKETS; t++) {
            (void)snprintf(key, sizeof(key), "t:{" TAG "}:first:0%zu%030d", t + 1, 0);
            if (command_is(append, 1, key)) {
                break;
            }
        }
        cr_assert_lt(t, (size_t)TICKETS);
        cr_assert_eq(command_number(expire, 2), t % 2 == 0 ? 176400000 : 7200000);
        struct slice text = append->words[2];
        cr_assert(strncmp(expected[t], text.p, text.n) == 0, "%s, not %.*s", expected[t],
            (int)text.n, text.p);
        memmove(expected[t], expected[t] + text.n, strlen(expected[t] + text.n) + 1);
        for (size_t b = 0; b < text.n; b++) {
            lines += text.p[b] == '\n';
        }
    }
    for (size_t t = 0; t < TICKETS; t++) {
        cr_assert_str_empty(expected[t]);
    }
    cr_assert((merge_first_count(merge) == 0) == (lines == 0));
    commands_release(&commands);
    buffer_release(&out);
}

Test(merge_first, is_the_models)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct merge_first *merge = merge_first_new();
    static struct drawn rows[ROWS];
    static char expected[TICKETS][8000];
    cr_assert_not_null(merge);
    for (int round = 0; round < 2000; round++) {
        size_t n = (size_t)dice_below(&dice, ROWS);
        size_t ticket = 0;
        memset(expected, 0, sizeof(expected));
        merge_first_clear(merge);
        for (size_t u = 0; round % 8 == 0 && u < USERS; u++) {
            for (size_t i = 0; i < ACTIONS * DAYS; i++) {
                bits[u][i / DAYS][i % DAYS] = u < USERS - 2 && dice_chance(&dice, 300);
            }
        }
        memset(bits[USERS - 2], 0, 2 * sizeof(bits[0])); /* who has no index has no bits */
        for (size_t i = 0; i < n; i++) {
            ticket = dice_chance(&dice, 300) && ticket + 1 < TICKETS ? ticket + 1 : ticket;
            draw(&dice, (uint32_t)i, ticket, &rows[i]);
            cr_assert(rows[i].row.ticket == NULL ||
                      merge_first_ask(merge, &rows[i].row, (int64_t)(FIRST_DAY + rows[i].day),
                          index_of(rows[i].user)));
        }
        answer(merge);
        for (size_t i = 0; i < n; i++) {
            struct activity_day day = {.day = (int64_t)(FIRST_DAY + rows[i].day)};
            if (rows[i].is_counted) {
                char line[200];
                line_of(&rows[i], line);
                for (size_t t = 0; rows[i].row.ticket != NULL && t < TICKETS; t++) {
                    if (rows[i].row.ticket == tickets[t]) {
                        (void)strncat(
                            expected[t], line, sizeof(expected[t]) - strlen(expected[t]) - 1);
                    }
                }
                cr_assert(merge_first_add(merge, &rows[i].row, &day, 0));
            }
        }
        check_commands(merge, expected);
        cr_assert(true, "TALLYD_TEST_SEED=%" PRIu64, seed);
    }
    merge_first_free(merge);
}

/* Its bit is not set then, so it would be first again and again. */
Test(merge_first, nothing_is_first_on_a_day_that_is_over)
{
    struct merge_first *merge = merge_first_new();
    struct row row = {
        .site = row_site_of("shop"), .ticket = tickets[0], .actions = &actions[1], .n_actions = 1};
    struct activity_day day = {.day = FIRST_DAY, .expire_ms = 1000};
    cr_assert_not_null(merge);
    cr_assert(merge_first_ask(merge, &row, FIRST_DAY, USER_INDEX_NONE));
    cr_assert(merge_first_add(merge, &row, &day, 1000));
    cr_expect_eq(merge_first_count(merge), 0u);
    cr_assert(merge_first_add(merge, &row, &day, 999));
    cr_expect_eq(merge_first_count(merge), 1u);
    merge_first_free(merge);
}

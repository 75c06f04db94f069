#include "storage/merge/merge_activity.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/commands.h"
#include "tests/lib/dice.h"
#include "tests/lib/row_sites.h"

TestSuite(merge_activity, .timeout = 60);

#define TAG       "7"
#define USERS     2600
#define DAYS      3
#define ACTIONS   3
#define SITES     3
#define FIRST_DAY 20000

static const char *const sites[SITES] = {"a", "b", "a-b"};
static const char *const actions[ACTIONS] = {"active", "checkin", "a:20241004"};

/* What Redis must have in the end: who did what when. */
static bool model[SITES][ACTIONS][DAYS][USERS], sent[SITES][ACTIONS][DAYS][USERS];
/* What Redis has: who has which index; the names in the order of their indices. */
static int64_t given[SITES][USERS]; /* -1: none */
static size_t order[SITES][USERS], n_given[SITES];
/* What was known before: the index, and the bit of `active` of one day. */
static bool known[SITES][USERS];
static int32_t known_day[SITES][USERS];
static char names[USERS][8];

static struct visitor_id id_of(size_t site, size_t user)
{
    struct visitor_id id = {{0}};
    memcpy(id.bytes, &user, sizeof(user));
    id.bytes[15] = (uint8_t)site;
    return id;
}

static size_t find(const char *const *texts, size_t n, struct slice text)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_equal(text, slice_of(texts[i]))) {
            return i;
        }
    }
    cr_assert_fail("%.*s is none of them", (int)text.n, text.p);
    return n;
}

static struct slice take_after(struct slice *text, const char *before)
{
    size_t n = strlen(before);
    cr_assert(text->n >= n && memcmp(text->p, before, n) == 0, "%.*s", (int)text->n, text->p);
    *text = (struct slice){text->p + n, text->n - n};
    return *text;
}

/* Site, action and day of a bitmap's key: the day stands last, the site has no colon. */
static void parse_bitmap(
    struct slice key, const char *site, int64_t day, size_t *ret_action, size_t *ret_day)
{
    char date[16];
    struct civil_date civil = civil_from_days(day);
    take_after(&key, "t:{" TAG "}:act:");
    take_after(&key, site);
    take_after(&key, ":");
    snprintf(date, sizeof(date), ":%04d%02d%02d", (int)civil.year, civil.month, civil.day);
    cr_assert_gt(key.n, 9u);
    cr_assert(memcmp(key.p + key.n - 9, date, 9) == 0, "%.*s", (int)key.n, key.p);
    *ret_action = find(actions, ACTIONS, (struct slice){key.p, key.n - 9});
    *ret_day = (size_t)(day - FIRST_DAY);
}

static size_t user_of(struct slice name)
{
    char text[8] = "";
    cr_assert_lt(name.n, sizeof(text));
    memcpy(text, name.p, name.n);
    return (size_t)strtoul(text + 1, NULL, 10);
}

static void take_bit(bool *bit)
{
    cr_assert(!*bit, "a bit is sent once");
    *bit = true;
}

static void set_bits(const struct command *c, size_t site, size_t action, size_t day)
{
    for (size_t i = 2; i < c->n; i += 4) {
        cr_assert(command_is(c, i, "SET"));
        cr_assert_eq(c->words[i + 1].p[0], 'u');
        long long width = strtoll(c->words[i + 1].p + 1, NULL, 10);
        long long at = command_number(c, i + 2);
        cr_assert(width >= 1 && width <= 32);
        cr_assert_eq(command_number(c, i + 3), (INT64_C(1) << width) - 1);
        for (long long bit = at; bit < at + width; bit++) {
            cr_assert_lt((size_t)bit, n_given[site]);
            take_bit(&sent[site][action][day][order[site][bit]]);
        }
    }
}

/* HSET of indices: the next one first, and the names in their order; many names take several. */
static size_t next_index[SITES];
static void give(const struct command *c)
{
    struct slice key = c->words[1];
    size_t site = find(sites, SITES, take_after(&key, "t:{" TAG "}:uid:"));
    size_t first = 2;
    if (n_given[site] == next_index[site]) {
        cr_assert(command_is(c, 2, ""));
        next_index[site] = (size_t)command_number(c, 3);
        first = 4;
    }
    cr_assert_geq(next_index[site], n_given[site] + (c->n - first) / 2);
    for (size_t i = first; i < c->n; i += 2) {
        size_t user = user_of(c->words[i]);
        cr_assert_eq(given[site][user], -1);
        cr_assert_eq((size_t)command_number(c, i + 1), n_given[site]);
        given[site][user] = (int64_t)n_given[site];
        order[site][n_given[site]++] = user;
    }
}

/* RPUSH: comes behind the HSET of the same names, and lengthens the list of a block. */
static size_t listed[SITES][USERS / 128 + 1];
static void list_names(const struct command *c)
{
    struct slice key = c->words[1];
    take_after(&key, "t:{" TAG "}:ids:");
    const char *colon = memchr(key.p, ':', key.n);
    cr_assert_not_null(colon);
    size_t site = find(sites, SITES, (struct slice){key.p, (size_t)(colon - key.p)});
    size_t block = (size_t)strtoull(colon + 1, NULL, 10);
    for (size_t i = 2; i < c->n; i++) {
        size_t index = block * 128 + listed[site][block]++;
        cr_assert_leq(listed[site][block], 128u);
        cr_assert_lt(index, n_given[site]);
        cr_assert_eq(user_of(c->words[i]), order[site][index]);
    }
}

/* A BITFIELD comes behind the ZADD of its bitmap's member. */
static void carry_out(const struct commands *commands)
{
    size_t site = 0;
    size_t action = 0;
    size_t day = 0;
    for (size_t i = 0; i < commands->n; i++) {
        const struct command *c = &commands->commands[i];
        cr_assert_leq(c->n, 4u + 4 * 1000, "Redis's Lua unpacks no more than 8000");
        if (command_is(c, 0, "HSET")) {
            give(c);
        } else if (command_is(c, 0, "RPUSH")) {
            list_names(c);
        } else if (command_is(c, 0, "ZADD")) {
            char key[128];
            cr_assert(command_is(c, 1, "t:{" TAG "}:acts"));
            snprintf(key, sizeof(key), "t:{" TAG "}:act:%.*s", (int)c->words[3].n, c->words[3].p);
            const char *colon = memchr(c->words[3].p, ':', c->words[3].n);
            site =
                find(sites, SITES, (struct slice){c->words[3].p, (size_t)(colon - c->words[3].p)});
            parse_bitmap(slice_of(key), sites[site], command_number(c, 2), &action, &day);
            cr_assert(i + 1 < commands->n && command_is(c + 1, 0, "BITFIELD") &&
                      command_is(c + 1, 1, key));
        } else {
            cr_assert(command_is(c, 0, "BITFIELD"));
            set_bits(c, site, action, day);
        }
    }
}

/* HMGET: the next index, and those of the names. */
static void answer(struct merge_activity *merge, const struct command *c)
{
    static char texts[USERS][24];
    struct slice key = c->words[1];
    size_t site = find(sites, SITES, take_after(&key, "t:{" TAG "}:uid:"));
    struct reply *items = calloc(c->n, sizeof(*items));
    cr_assert(command_is(c, 0, "HMGET") && command_is(c, 2, ""));
    cr_assert_leq(c->n, 3u + 1000);
    char next[24];
    snprintf(next, sizeof(next), "%zu", n_given[site]);
    items[0] = (struct reply){.type = REPLY_NIL};
    if (n_given[site] > 0) {
        items[0] = (struct reply){.type = REPLY_TEXT, .text = slice_of(next)};
    }
    for (size_t i = 3; i < c->n; i++) {
        size_t user = user_of(c->words[i]);
        cr_assert(!known[site][user]);
        items[i - 2] = (struct reply){.type = REPLY_NIL};
        if (given[site][user] >= 0) {
            snprintf(texts[user], sizeof(texts[user]), "%lld", (long long)given[site][user]);
            items[i - 2] = (struct reply){.type = REPLY_TEXT, .text = slice_of(texts[user])};
        }
    }
    struct reply reply = {.type = REPLY_ARRAY, .items = items, .n = c->n - 2};
    cr_assert(merge_activity_take(merge, &reply));
    free(items);
}

static void ask(struct merge_activity *merge)
{
    struct buffer out;
    struct commands commands;
    struct reply surplus = {.type = REPLY_ARRAY};
    buffer_init(&out);
    size_t n = merge_activity_write_questions(merge, TAG, &out);
    cr_assert(commands_read(&out, &commands));
    cr_assert_eq(commands.n, n);
    for (size_t i = 0; i < n; i++) {
        answer(merge, &commands.commands[i]);
    }
    cr_assert_not(merge_activity_take(merge, &surplus));
    commands_release(&commands);
    buffer_release(&out);
}

static void note(void *data, const struct visitor_id *id, uint32_t index, int32_t active_day)
{
    size_t user;
    size_t *n = data;
    memcpy(&user, id->bytes, sizeof(user));
    cr_assert_eq((int64_t)index, given[id->bytes[15]][user]);
    cr_assert(active_day >= FIRST_DAY && active_day < FIRST_DAY + DAYS);
    ++*n;
}

/* An event of a user. */
struct drawn {
    struct row row;
    struct slice actions[3];
    struct activity_day day;
    struct known_user known;
    bool is_known;
};

/* @counts: it is not only asked for. */
static void draw(struct dice *dice, struct drawn *ret, bool counts)
{
    static const struct retention retention = {.keep_s = {0, 0, 10 * 86400, 0}};
    size_t site = (size_t)dice_below(dice, SITES);
    size_t user = (size_t)(dice_below(dice, USERS) * dice_below(dice, USERS) / USERS);
    size_t day_number = (size_t)dice_below(dice, DAYS);
    struct activity_day day = activity_day_make(zone_utc(), &retention,
        (FIRST_DAY + (int64_t)day_number) * 86400 + dice_below(dice, 86400));
    ret->row = (struct row){.at_s = 0,
        .site = row_site_of(sites[site]),
        .user = slice_of(names[user]),
        .actions = ret->actions,
        .user_id = id_of(site, user)};
    for (int64_t n = dice_below(dice, 3); n > 0; n--) {
        size_t action = (size_t)dice_below(dice, ACTIONS);
        ret->actions[ret->row.n_actions++] = slice_of(actions[action]);
        model[site][action][day_number][user] |= counts;
    }
    model[site][0][day_number][user] |= counts;
    ret->day = day;
    ret->is_known = known[site][user];
    ret->known = (struct known_user){
        .index = (uint32_t)given[site][user], .active_day = known_day[site][user]};
}

static void check_sent(uint64_t seed)
{
    for (size_t s = 0; s < SITES; s++) {
        for (size_t a = 0; a < ACTIONS; a++) {
            for (size_t d = 0; d < DAYS; d++) {
                for (size_t u = 0; u < USERS; u++) {
                    bool there =
                        a == 0 && known[s][u] && known_day[s][u] == (int32_t)(FIRST_DAY + d);
                    cr_assert_eq(sent[s][a][d][u], model[s][a][d][u] && !there,
                        "TALLYD_TEST_SEED=%" PRIu64, seed);
                }
            }
        }
    }
}

enum { EVENTS_MAX = 12000 };

static void fold(struct merge_activity *merge, struct dice *dice, size_t n)
{
    static struct drawn drawn[EVENTS_MAX];
    static bool counts[EVENTS_MAX];
    struct buffer out;
    struct commands commands;
    size_t users = 0;
    merge_activity_clear(merge);
    for (size_t i = 0; i < n; i++) {
        counts[i] = !dice_chance(dice, 100);
        draw(dice, &drawn[i], counts[i]);
        cr_assert(
            merge_activity_ask(merge, &drawn[i].row, drawn[i].is_known ? &drawn[i].known : NULL));
    }
    ask(merge);
    for (size_t i = 0; i < n; i++) {
        const struct known_user *is = drawn[i].is_known ? &drawn[i].known : NULL;
        cr_assert(!counts[i] || merge_activity_add(merge, &drawn[i].row, &drawn[i].day, is));
    }
    buffer_init(&out);
    size_t n_commands =
        merge_activity_write(merge, TAG, INT64_C(86400000) * (FIRST_DAY + DAYS), &out);
    cr_assert(commands_read(&out, &commands));
    cr_assert_eq(commands.n, n_commands);
    carry_out(&commands);
    cr_assert_arr_eq(n_given, next_index, sizeof(n_given));
    merge_activity_users(merge, note, &users);
    cr_assert(n == 0 || users > 0);
    commands_release(&commands);
    buffer_release(&out);
}

Test(merge_activity, every_bit_once_and_no_other)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct merge_activity *merge = merge_activity_new();
    cr_assert(merge != NULL);
    memset(given, 0xff, sizeof(given));
    for (size_t u = 0; u < USERS; u++) {
        snprintf(names[u], sizeof(names[u]), "u%zu", u);
    }
    for (int round = 0; round < 12; round++) {
        memset(model, 0, sizeof(model));
        memset(sent, 0, sizeof(sent));
        for (size_t s = 0; s < SITES; s++) {
            for (size_t u = 0; u < USERS; u++) {
                known[s][u] = given[s][u] >= 0 && dice_chance(&dice, 500);
                known_day[s][u] = FIRST_DAY + (int32_t)dice_below(&dice, DAYS);
            }
        }
        fold(merge, &dice, round == 1 ? 0 : 1 + (size_t)dice_below(&dice, EVENTS_MAX - 1));
        check_sent(seed);
    }
    merge_activity_free(merge);
}

/* A day that is kept no more gets no bits; its user gets an index all the same. */
Test(merge_activity, a_day_whose_time_is_over)
{
    struct merge_activity *merge = merge_activity_new();
    struct row row = {.site = row_site_of("a"), .user = SLICE("u1"), .user_id = id_of(0, 1)};
    struct activity_day day = {.day = FIRST_DAY, .expire_ms = 1000};
    struct buffer out;
    struct commands commands;
    memset(given, 0xff, sizeof(given));
    buffer_init(&out);
    cr_assert(merge_activity_ask(merge, &row, NULL));
    ask(merge);
    cr_assert(merge_activity_add(merge, &row, &day, NULL));
    cr_expect_eq(merge_activity_write(merge, TAG, 1000, &out), 2u);
    cr_assert(commands_read(&out, &commands));
    cr_expect(command_is(&commands.commands[0], 0, "HSET"));
    cr_expect(command_is(&commands.commands[1], 0, "RPUSH"));
    commands_release(&commands);
    buffer_release(&out);
    merge_activity_free(merge);
}

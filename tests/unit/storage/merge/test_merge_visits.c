#include "storage/merge/merge_visits.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/commands.h"
#include "tests/lib/dice.h"
#include "tests/lib/row_sites.h"

TestSuite(merge_visits, .timeout = 60);

#define TAG        "7"
#define NOW_S      INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */
#define TIMEOUT_S  INT64_C(1800)
#define PEOPLE_MAX 3000
#define VALUES_MAX 20000

static struct row row_of(const char *site, int64_t at_s, uint32_t visitor)
{
    uint64_t site_hash = page_hash(slice_of(site), SLICE(""));
    struct row row = {.at_s = at_s,
        .site = row_site_of(site),
        .page = SLICE("/"),
        .is_view = true,
        .has_visitor = true};
    memcpy(row.visitor.bytes, &site_hash, sizeof(site_hash));
    memcpy(row.visitor.bytes + 8, &visitor, sizeof(visitor));
    return row;
}

/* ---- a Redis that has hashes ---- */

struct value {
    char key[64], field[16], bytes[22];
    size_t n;
};

struct fake {
    struct value *values; /* owned */
    size_t n, largest;    /* largest: words of a command */
    size_t unlinked, expiries;
};

static bool has_text(const char *text, struct slice word)
{
    return slice_equal(word, slice_of(text));
}

static struct value *find_value(struct fake *fake, struct slice key, struct slice field)
{
    for (size_t i = 0; i < fake->n; i++) {
        if (has_text(fake->values[i].key, key) && memcmp(fake->values[i].field, field.p, 16) == 0) {
            return &fake->values[i];
        }
    }
    return NULL;
}

static bool has_key(const struct fake *fake, struct slice key)
{
    for (size_t i = 0; i < fake->n; i++) {
        if (has_text(fake->values[i].key, key)) {
            return true;
        }
    }
    return false;
}

static void answer(struct fake *fake, struct merge_visits *merge, size_t i, const struct command *c)
{
    struct reply *items = calloc(c->n, sizeof(*items));
    struct reply reply = {.type = REPLY_ARRAY, .items = items, .n = c->n - 2};
    if (command_is(c, 0, "EXISTS")) {
        reply = (struct reply){.type = REPLY_INTEGER, .integer = has_key(fake, c->words[1])};
    } else {
        cr_assert(command_is(c, 0, "HMGET"));
    }
    for (size_t k = 2; k < c->n; k++) {
        struct value *value = find_value(fake, c->words[1], c->words[k]);
        items[k - 2] = (struct reply){.type = value == NULL ? REPLY_NIL : REPLY_TEXT};
        if (value != NULL) {
            items[k - 2].text = (struct slice){value->bytes, value->n};
        }
    }
    cr_assert(merge_visits_take(merge, i, &reply));
    free(items);
}

static void ask(struct fake *fake, struct merge_visits *merge)
{
    struct buffer out;
    struct commands commands;
    buffer_init(&out);
    size_t n = merge_visits_write_questions(merge, TAG, &out);
    cr_assert(commands_read(&out, &commands));
    cr_assert_eq(commands.n, n);
    for (size_t i = 0; i < n; i++) {
        answer(fake, merge, i, &commands.commands[i]);
    }
    commands_release(&commands);
    buffer_release(&out);
}

static void set(struct fake *fake, const struct command *c)
{
    for (size_t k = 2; k < c->n; k += 2) {
        struct value *value = find_value(fake, c->words[1], c->words[k]);
        cr_assert(c->words[k + 1].n == 10 || c->words[k + 1].n == 22);
        if (value == NULL) {
            cr_assert_lt(fake->n, (size_t)VALUES_MAX);
            value = &fake->values[fake->n++];
            *value = (struct value){0};
            memcpy(value->key, c->words[1].p, c->words[1].n);
            memcpy(value->field, c->words[k].p, 16);
        }
        value->n = c->words[k + 1].n;
        memcpy(value->bytes, c->words[k + 1].p, value->n);
    }
}

static void unlink_key(struct fake *fake, struct slice key)
{
    size_t n = 0;
    for (size_t i = 0; i < fake->n; i++) {
        if (!has_text(fake->values[i].key, key)) {
            fake->values[n++] = fake->values[i];
        }
    }
    fake->unlinked += fake->n - n;
    fake->n = n;
}

static void carry_out(struct fake *fake, const struct merge_visits *merge)
{
    struct buffer out;
    struct commands commands;
    buffer_init(&out);
    size_t n = merge_visits_write(merge, TAG, &out);
    cr_assert(commands_read(&out, &commands));
    cr_assert_eq(commands.n, n);
    for (size_t i = 0; i < n; i++) {
        const struct command *c = &commands.commands[i];
        fake->largest = c->n > fake->largest ? c->n : fake->largest;
        if (command_is(c, 0, "HSET")) {
            set(fake, c);
        } else if (command_is(c, 0, "UNLINK")) {
            unlink_key(fake, c->words[1]);
        } else {
            cr_assert(command_is(c, 0, "EXPIRE") && command_is(c, 3, "NX"));
            cr_assert_eq(command_number(c, 2), 4 * TIMEOUT_S + 48 * 3600);
            fake->expiries++;
        }
    }
    commands_release(&commands);
    buffer_release(&out);
}

static struct fake fake_make(void)
{
    struct fake fake = {.values = calloc(VALUES_MAX, sizeof(struct value))};
    cr_assert_not_null(fake.values);
    return fake;
}

/* ---- the rule, one event after the other ---- */

struct person {
    bool is_known, is_bounce;
    int64_t last_s, arrival_s;
};

static struct visit_step rule(struct person *person, int64_t at_s, int64_t arrival_s)
{
    struct visit_step step = {0};
    bool remembered = person->is_known && arrival_s - person->arrival_s <= 2 * TIMEOUT_S;
    int64_t later_s = at_s - person->last_s;
    if (!remembered || later_s > TIMEOUT_S) {
        step.begins = person->is_bounce = true;
    } else if (later_s >= -TIMEOUT_S) {
        step.engages = person->is_bounce;
        step.seconds = later_s > 0 ? (uint32_t)later_s : 0;
        person->is_bounce = false;
    }
    person->last_s = remembered && later_s < 0 ? person->last_s : at_s;
    person->arrival_s = arrival_s;
    person->is_known = true;
    return step;
}

static bool same_step(struct visit_step a, struct visit_step b)
{
    return a.begins == b.begins && a.engages == b.engages && a.seconds == b.seconds;
}

/* ---- by hand ---- */

Test(merge_visits, nothing)
{
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    ask(&fake, merge);
    carry_out(&fake, merge);
    cr_expect_eq(fake.n, 0u);
    merge_visits_free(merge);
    merge_visits_free(NULL);
    free(fake.values);
}

/* The words themselves, once. */
Test(merge_visits, commands_of_a_visitor)
{
    const struct row row = row_of("shop", 1, 5);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    cr_assert(merge_visits_ask(merge, &row, 0x0102030405, VISIT_ANYWHERE));
    ask(&fake, merge);
    cr_expect(merge_visits_add(merge, &row, 0x0102030405).begins);
    carry_out(&fake, merge);
    cr_assert_eq(fake.n, 1u);
    cr_expect_str_eq(fake.values[0].key, "t:{7}:visit:shop:1202422");
    cr_expect_arr_eq(fake.values[0].field, row.visitor.bytes, 16);
    cr_expect_arr_eq(fake.values[0].bytes, "\x80\0\0\0\1\1\2\3\4\5", 10, "a bounce");
    cr_expect_eq(fake.expiries, 1u);
    cr_expect_not(merge_visits_add(merge, &row, 0x0102030405).begins);
    carry_out(&fake, merge);
    cr_expect_arr_eq(fake.values[0].bytes, "\0\0\0\0\1\1\2\3\4\5", 10, "none any more");
    merge_visits_free(merge);
    free(fake.values);
}

/* Who is asked for and then not counted is not written. */
Test(merge_visits, a_visitor_that_does_not_come)
{
    const struct row rows[] = {row_of("shop", NOW_S, 1), row_of("shop", NOW_S, 2)};
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    cr_assert(merge_visits_ask(merge, &rows[0], NOW_S, VISIT_ANYWHERE) &&
              merge_visits_ask(merge, &rows[1], NOW_S, VISIT_ANYWHERE));
    ask(&fake, merge);
    cr_expect(merge_visits_add(merge, &rows[1], NOW_S).begins);
    carry_out(&fake, merge);
    cr_assert_eq(fake.n, 1u);
    cr_expect_arr_eq(fake.values[0].field, rows[1].visitor.bytes, 16);
    merge_visits_free(merge);
    free(fake.values);
}

Test(merge_visits, answers_that_are_none)
{
    const struct row row = row_of("shop", NOW_S, 1);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct reply items[2] = {{.type = REPLY_NIL}, {.type = REPLY_NIL}};
    struct reply two = {.type = REPLY_ARRAY, .items = items, .n = 2};
    struct reply text = {.type = REPLY_TEXT, .text = SLICE("x")};
    cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_ANYWHERE));
    cr_expect_not(merge_visits_take(merge, 0, &two));
    cr_expect_not(merge_visits_take(merge, 1, &text));
    cr_expect_not(merge_visits_take(merge, 3, &text));
    merge_visits_free(merge);
}

/* ---- property: folds, one after the other, with times of arrival that may jump ---- */

static struct person people[2][PEOPLE_MAX];

/* Ids that differ in all bits; or as row_of() makes them, so that all of a site have one mark. */
static void scatter(struct row *row)
{
    uint64_t words[2];
    memcpy(words, row->visitor.bytes, sizeof(words));
    words[1] = (words[1] + 1) * UINT64_C(0x9e3779b97f4a7c15);
    words[0] = (words[0] ^ words[1] >> 7) * UINT64_C(0xbf58476d1ce4e5b9);
    memcpy(row->visitor.bytes, words, sizeof(words));
}

static void drop_expected(void *data, const struct visitor_id *id)
{
    known_visitors_drop(data, id);
}

static void learn_visitor(void *data, const struct visitor_id *id, int64_t slot)
{
    known_visitors_add(data, id, slot);
}

struct folded {
    struct row rows[1500];
    int64_t arrivals_s[1500];
    size_t whose[1500], where[1500];
    size_t n;
};

/* Ask for all visitors, as often as one is expected in vain.  What Redis has beside a visit is the
 * index of that visitor. */
static void ask_for_all(struct fake *fake, struct merge_visits *merge, const struct folded *f,
    struct known_visitors *known)
{
    do {
        merge_visits_clear(merge);
        for (size_t i = 0; i < f->n; i++) {
            int64_t slot = merge_visits_slot(merge, f->arrivals_s[i]);
            cr_assert(merge_visits_ask(merge, &f->rows[i], f->arrivals_s[i],
                known_visitors_find(known, &f->rows[i].visitor, slot)));
        }
        ask(fake, merge);
        merge_visits_generation(merge, 7);
    } while (merge_visits_missing(merge, drop_expected, known) > 0);
    for (size_t i = 0; i < f->n; i++) {
        struct known_user user;
        if (merge_visits_user(merge, &f->rows[i].visitor, &user)) {
            cr_assert_eq(user.index, f->whose[i]);
        }
    }
}

static void fold(struct fake *fake, struct merge_visits *merge, struct dice *dice,
    int64_t *arrival_s, size_t n_people, struct known_visitors *known, uint64_t seed)
{
    static struct folded f;
    static const char *const sites[2] = {"shop", "blog"};
    f.n = (size_t)dice_below(dice, sizeof(f.rows) / sizeof(f.rows[0]));
    for (size_t i = 0; i < f.n; i++) {
        *arrival_s += dice_chance(dice, 3) ? dice_below(dice, 3 * TIMEOUT_S) : dice_below(dice, 3);
        f.arrivals_s[i] = *arrival_s;
        f.whose[i] = (size_t)dice_below(dice, (int64_t)n_people);
        f.where[i] = (size_t)dice_below(dice, 2);
        int64_t age_s = dice_chance(dice, 200) ? dice_below(dice, 3 * TIMEOUT_S) : 0;
        f.rows[i] = row_of(sites[f.where[i]], *arrival_s - age_s, (uint32_t)f.whose[i]);
        if (n_people > 100) {
            scatter(&f.rows[i]);
        }
        if (dice_chance(dice, 50)) { /* a mark that is wrong */
            learn_visitor(known, &f.rows[i].visitor,
                merge_visits_slot(merge, *arrival_s) - dice_below(dice, 2));
        }
    }
    ask_for_all(fake, merge, &f, known);
    for (size_t i = 0; i < f.n; i++) {
        struct person *person = &people[f.where[i]][f.whose[i]];
        struct visit_step expected = rule(person, f.rows[i].at_s, f.arrivals_s[i]);
        cr_assert(same_step(merge_visits_add(merge, &f.rows[i], f.arrivals_s[i]), expected),
            "TALLYD_TEST_SEED=%" PRIu64 ", event %zu", seed, i);
        merge_visits_set_user(merge, &f.rows[i].visitor, (uint32_t)f.whose[i], 20777);
    }
    carry_out(fake, merge);
    merge_visits_users(merge, learn_visitor, known);
}

/* Whoever is expected, rightly or not: it changes nothing of what is decided. */
Test(merge_visits, agrees_with_the_rule_one_by_one)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    for (int round = 0; round < 6; round++) {
        struct fake fake = fake_make();
        struct known_visitors known;
        int64_t arrival_s = NOW_S;
        known_visitors_init(&known);
        memset(people, 0, sizeof(people));
        for (int i = 0; i < 8; i++) {
            fold(&fake, merge, &dice, &arrival_s, round % 2 == 0 ? 40 : 2000, &known, seed);
        }
        cr_expect_gt(fake.unlinked, 0u);
        cr_expect_leq(fake.largest, 2u + 2 * 1000);
        known_visitors_release(&known);
        free(fake.values);
    }
    merge_visits_free(merge);
}

/* ---- borders between two folds ---- */

/* What a view is, @later_s in event time and @arrives_s in arrival behind a fold with the
 * visitor's first one. */
static struct visit_step in_the_next_fold(int64_t arrival_s, int64_t later_s, int64_t arrives_s)
{
    struct row row = row_of("shop", arrival_s, 1);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    struct visit_step step = {0};
    const int64_t arrivals_s[2] = {arrival_s, arrival_s + arrives_s};
    for (int i = 0; i < 2; i++) {
        row.at_s = arrival_s + (i == 0 ? 0 : later_s);
        merge_visits_clear(merge);
        cr_assert(merge_visits_ask(merge, &row, arrivals_s[i], VISIT_ANYWHERE));
        ask(&fake, merge);
        step = merge_visits_add(merge, &row, arrivals_s[i]);
        carry_out(&fake, merge);
    }
    merge_visits_free(merge);
    free(fake.values);
    return step;
}

/* A gap of the timeout is the same visit, and the visitor is remembered for two timeouts of
 * arrival: to the second, wherever in a slot the first one came. */
Test(merge_visits, just_in_time_for_the_next_fold)
{
    const struct visit_step begins = {true, false, 0}, engages = {false, true, TIMEOUT_S};
    const int64_t slot_s = NOW_S / (2 * TIMEOUT_S) * 2 * TIMEOUT_S;
    const int64_t starts_s[] = {slot_s, slot_s + 1, NOW_S, slot_s + 2 * TIMEOUT_S - 1};
    for (size_t i = 0; i < sizeof(starts_s) / sizeof(starts_s[0]); i++) {
        int64_t at_s = starts_s[i];
        cr_expect(same_step(in_the_next_fold(at_s, TIMEOUT_S, 1), engages));
        cr_expect(same_step(in_the_next_fold(at_s, TIMEOUT_S + 1, 1), begins));
        cr_expect(same_step(in_the_next_fold(at_s, TIMEOUT_S, TIMEOUT_S), engages));
        cr_expect(same_step(in_the_next_fold(at_s, TIMEOUT_S, 2 * TIMEOUT_S), engages));
        cr_expect(same_step(in_the_next_fold(at_s, TIMEOUT_S, 2 * TIMEOUT_S + 1), begins));
    }
}

/* A batch may hold events that are counted already, here the first one: whether they are is read
 * together with what is remembered.  Another fold has counted a later one meanwhile. */
Test(merge_visits, an_event_that_is_counted_already_does_not_hide_a_later_one)
{
    for (int64_t slots = 1; slots <= 5; slots++) {
        struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
        struct fake fake = fake_make();
        const int64_t late_s = NOW_S + slots * 2 * TIMEOUT_S;
        struct row first = row_of("s", NOW_S, 1), later = row_of("s", late_s, 1);
        struct row last = row_of("s", late_s + 60, 1);
        const struct row *counted[] = {&first, &later};
        for (size_t i = 0; i < 2; i++) { /* by two folds */
            cr_assert(merge_visits_ask(merge, counted[i], counted[i]->at_s, VISIT_ANYWHERE));
            ask(&fake, merge);
            cr_expect(merge_visits_add(merge, counted[i], counted[i]->at_s).begins);
            carry_out(&fake, merge);
            merge_visits_clear(merge);
        }
        cr_assert(merge_visits_ask(merge, &first, NOW_S, VISIT_ANYWHERE));
        cr_assert(merge_visits_ask(merge, &last, late_s + 60, VISIT_ANYWHERE));
        ask(&fake, merge);
        cr_expect(same_step(merge_visits_add(merge, &last, late_s + 60),
            (struct visit_step){.engages = true, .seconds = 60}));
        merge_visits_free(merge);
        free(fake.values);
    }
}

/* ---- named events ---- */

/* What arrived in the slot behind the event's may be counted by now, by another process. */
Test(merge_visits, an_event_that_is_counted_late_begins_no_visit)
{
    struct fake fake = fake_make();
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    const int64_t border_s = (NOW_S / (2 * TIMEOUT_S) + 1) * 2 * TIMEOUT_S;
    struct row later = row_of("a", border_s + 1, 1);
    struct row earlier = row_of("a", border_s - 1, 1);
    struct visit_step step[2];
    cr_assert_not_null(merge);
    for (int i = 0; i < 2; i++) {
        const struct row *row = i == 0 ? &later : &earlier;
        merge_visits_clear(merge);
        merge_visits_now(merge, border_s + 2);
        cr_assert(merge_visits_ask(merge, row, row->at_s, VISIT_ANYWHERE));
        ask(&fake, merge);
        step[i] = merge_visits_add(merge, row, row->at_s);
        carry_out(&fake, merge);
    }
    cr_expect(same_step(step[0], (struct visit_step){.begins = true}));
    cr_expect(same_step(step[1], (struct visit_step){.engages = true}));
    cr_expect_eq(fake.n, 1u, "it is kept in the later slot alone");
    merge_visits_free(merge);
    free(fake.values);
}

/* They begin no visit; they prolong one that is open. */
Test(merge_visits, a_named_event_prolongs_a_visit)
{
    struct row view = row_of("shop", NOW_S, 1);
    struct row named = view;
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    named.is_view = false;
    cr_assert(merge_visits_ask(merge, &view, NOW_S, VISIT_ANYWHERE));
    ask(&fake, merge);
    cr_expect_not(merge_visits_add(merge, &named, NOW_S).begins);
    carry_out(&fake, merge);
    cr_expect_eq(fake.n, 0u, "nothing is remembered of an event without a visit");
    cr_expect(merge_visits_add(merge, &view, NOW_S).begins);
    named.at_s = NOW_S + TIMEOUT_S;
    cr_expect_not(merge_visits_add(merge, &named, NOW_S + TIMEOUT_S).begins);
    view.at_s = NOW_S + 2 * TIMEOUT_S;
    cr_expect_not(
        merge_visits_add(merge, &view, NOW_S + 2 * TIMEOUT_S).begins, "the visit is prolonged");
    named.at_s = view.at_s + TIMEOUT_S + 1;
    cr_expect_not(merge_visits_add(merge, &named, named.at_s).begins);
    view.at_s = named.at_s;
    cr_expect(merge_visits_add(merge, &view, view.at_s).begins, "too late to prolong");
    merge_visits_free(merge);
    free(fake.values);
}

/* ---- what a visit gains ---- */

static struct visit_step add(struct merge_visits *merge, struct row *row, int64_t later_s)
{
    row->at_s = NOW_S + later_s;
    return merge_visits_add(merge, row, NOW_S);
}

Test(merge_visits, what_a_visit_gains)
{
    static const struct {
        const char *what;
        int64_t later_s;
        struct visit_step step;
    } cases[] = {
        {"begins", 0, {true, false, 0}},
        {"engages", 10, {false, true, 10}},
        {"grows", 70, {false, false, 60}},
        {"out of order", 30, {false, false, 0}},
        {"goes on where it was", 80, {false, false, 10}},
        {"just in time", 80 + TIMEOUT_S, {false, false, TIMEOUT_S}},
        {"begins anew", 81 + 2 * TIMEOUT_S, {true, false, 0}},
        {"too old to be a part of it", 80 + TIMEOUT_S, {false, false, 0}},
        {"old, but a part of it", 81 + TIMEOUT_S, {false, true, 0}},
        {"is no bounce already", 82 + 2 * TIMEOUT_S, {false, false, 1}},
    };
    struct row row = row_of("shop", NOW_S, 1);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_ANYWHERE));
    ask(&fake, merge);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct visit_step step = add(merge, &row, cases[i].later_s);
        cr_expect(same_step(step, cases[i].step), "%s: %d %d %u", cases[i].what, step.begins,
            step.engages, step.seconds);
    }
    merge_visits_free(merge);
    free(fake.values);
}

/* A named event engages a visit, and makes it longer, as a page view does. */
Test(merge_visits, a_named_event_engages_a_visit)
{
    struct row row = row_of("shop", NOW_S, 1);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_ANYWHERE));
    ask(&fake, merge);
    cr_expect(add(merge, &row, 0).begins);
    row.is_view = false;
    cr_expect(same_step(add(merge, &row, 7), (struct visit_step){false, true, 7}));
    cr_expect(same_step(add(merge, &row, 8 + TIMEOUT_S), (struct visit_step){0}));
    merge_visits_free(merge);
    free(fake.values);
}

/* ---- indices of users ---- */

#define GENERATION UINT64_C(0x123456789abcdef0)

static void count_visitor(void *data, const struct visitor_id *id)
{
    (void)id;
    ++*(size_t *)data;
}

static void take_slot(void *data, const struct visitor_id *id, int64_t slot)
{
    (void)id;
    *(int64_t *)data = slot;
}

/* One fold with an event of the row's visitor.  Returns how many were expected in vain. */
static size_t fold_of_user(struct fake *fake, struct merge_visits *merge, const struct row *row,
    enum known_visit expected, uint64_t generation, struct known_user *ret)
{
    size_t missing = 0;
    merge_visits_clear(merge);
    cr_assert(merge_visits_ask(merge, row, row->at_s, expected));
    ask(fake, merge);
    merge_visits_generation(merge, generation);
    cr_expect_eq(merge_visits_missing(merge, count_visitor, &missing), missing);
    *ret = (struct known_user){.index = USER_INDEX_NONE};
    cr_expect_eq(merge_visits_user(merge, &row->visitor, ret), expected != VISIT_ANYWHERE);
    (void)merge_visits_add(merge, row, row->at_s);
    return missing;
}

Test(merge_visits, an_index_lies_beside_the_visit)
{
    const struct row row = row_of("shop", NOW_S, 1);
    const struct row later = row_of("shop", NOW_S + TIMEOUT_S, 1);
    const struct row nobody = row_of("shop", NOW_S, 2);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    struct known_user user;
    int64_t slot = 0;
    cr_expect_eq(fold_of_user(&fake, merge, &row, VISIT_IN_SLOT, GENERATION, &user), 1u);
    merge_visits_set_user(merge, &nobody.visitor, 8, 1);
    cr_expect_not(merge_visits_keeps(merge, &row.visitor));
    carry_out(&fake, merge);
    cr_assert(fake.n == 1 && fake.values[0].n == 10, "no index is known");
    cr_expect_eq(fold_of_user(&fake, merge, &row, VISIT_ANYWHERE, GENERATION, &user), 0u);
    merge_visits_set_user(merge, &row.visitor, 0x01020304, 20777);
    cr_expect(merge_visits_keeps(merge, &row.visitor));
    cr_expect_not(merge_visits_keeps(merge, &nobody.visitor));
    merge_visits_users(merge, take_slot, &slot);
    cr_expect_eq(slot, merge_visits_slot(merge, NOW_S));
    carry_out(&fake, merge);
    cr_assert(fake.n == 1 && fake.values[0].n == 22);
    cr_expect_arr_eq(fake.values[0].bytes + 10, "\1\2\3\4\x40\x51\x29\x78\x9a\xbc\xde\xf0", 12);
    cr_expect_eq(
        fold_of_user(&fake, merge, &row, VISIT_IN_SLOT, GENERATION + 1, &user), 1u, "of others");
    cr_expect_eq(fold_of_user(&fake, merge, &later, VISIT_IN_SLOT, GENERATION, &user), 0u);
    cr_expect(user.index == 0x01020304 && user.active_day == 20777);
    carry_out(&fake, merge); /* it goes along, also into the next slot */
    cr_expect_eq(fold_of_user(&fake, merge, &later, VISIT_IN_SLOT, GENERATION, &user), 0u);
    cr_expect(user.index == 0x01020304 && user.active_day == 20777);
    merge_visits_set_user(merge, &row.visitor, 5, ACTIVE_DAY_NONE);
    carry_out(&fake, merge);
    cr_expect_eq(fold_of_user(&fake, merge, &later, VISIT_IN_SLOT, GENERATION, &user), 0u);
    cr_expect(user.index == 5 && user.active_day == ACTIVE_DAY_NONE);
    cr_expect_eq(fold_of_user(&fake, merge, &later, VISIT_ANYWHERE, GENERATION + 1, &user), 0u);
    carry_out(&fake, merge);
    cr_expect_eq(
        fold_of_user(&fake, merge, &later, VISIT_IN_SLOT, GENERATION, &user), 1u, "it is dropped");
    merge_visits_free(merge);
    free(fake.values);
}

/* An action of a user who came as a visitor before it: the index is asked for all the same. */
Test(merge_visits, one_of_several_events_expects_an_index)
{
    const struct row row = row_of("shop", NOW_S, 1);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    size_t missing = 0;
    cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_ANYWHERE));
    cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_IN_SLOT));
    cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_ANYWHERE));
    ask(&fake, merge);
    merge_visits_generation(merge, GENERATION);
    cr_expect_eq(merge_visits_missing(merge, count_visitor, &missing), 1u);
    merge_visits_free(merge);
    free(fake.values);
}

/* The slot before is asked about those who are not expected in a later one, if there are any. */
Test(merge_visits, who_is_expected_in_a_slot_is_not_asked_for_in_the_one_before)
{
    const int64_t slot_s = 2 * TIMEOUT_S;
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    struct known_user user;
    struct row rows[3]; /* in this slot, in the one before, nowhere */
    for (uint32_t i = 0; i < 3; i++) {
        rows[i] = row_of("shop", i == 1 ? NOW_S - slot_s : NOW_S, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        (void)fold_of_user(&fake, merge, &rows[i], VISIT_ANYWHERE, GENERATION, &user);
        merge_visits_set_user(merge, &rows[i].visitor, 10 + i, 20777);
        carry_out(&fake, merge);
    }
    for (uint32_t n = 1; n <= 3; n++) {
        static const enum known_visit expected[] = {
            VISIT_IN_SLOT, VISIT_IN_SLOT_BEFORE, VISIT_ANYWHERE};
        struct buffer out;
        size_t missing = 0;
        merge_visits_clear(merge);
        for (uint32_t i = 0; i < n; i++) {
            cr_assert(merge_visits_ask(merge, &rows[i], NOW_S, expected[i]));
        }
        buffer_init(&out);
        cr_expect_eq(merge_visits_write_questions(merge, TAG, &out), n == 1 ? 2u : 3u);
        buffer_release(&out);
        ask(&fake, merge);
        merge_visits_generation(merge, GENERATION);
        cr_expect_eq(merge_visits_missing(merge, count_visitor, &missing), 0u);
        for (uint32_t i = 0; i < n && i < 2; i++) {
            cr_expect(merge_visits_user(merge, &rows[i].visitor, &user) && user.index == 10 + i);
        }
    }
    merge_visits_free(merge);
    free(fake.values);
}

/* 0 stands for no index, so no generation is 0; five bytes of it are kept. */
Test(merge_visits, every_generation_is_one)
{
    const struct row row = row_of("shop", NOW_S, 1);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    struct known_user user;
    (void)fold_of_user(&fake, merge, &row, VISIT_IN_SLOT, UINT64_C(1) << 40, &user);
    merge_visits_set_user(merge, &row.visitor, 7, 20777);
    carry_out(&fake, merge);
    cr_expect_eq(fold_of_user(&fake, merge, &row, VISIT_IN_SLOT, UINT64_C(1) << 40, &user), 0u);
    cr_expect_eq(user.index, 7u);
    merge_visits_free(merge);
    free(fake.values);
}

/* Who was asked for, is known with an index, and did not come: nothing is written of that one. */
Test(merge_visits, only_who_came_is_kept)
{
    const struct row row = row_of("shop", NOW_S, 1);
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct fake fake = fake_make();
    struct known_user user;
    int64_t slot = 0;
    (void)fold_of_user(&fake, merge, &row, VISIT_IN_SLOT, GENERATION, &user);
    merge_visits_set_user(merge, &row.visitor, 7, 20777);
    carry_out(&fake, merge);
    merge_visits_clear(merge);
    cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_IN_SLOT));
    ask(&fake, merge);
    merge_visits_generation(merge, GENERATION);
    cr_expect_not(merge_visits_keeps(merge, &row.visitor));
    merge_visits_users(merge, take_slot, &slot);
    cr_expect_eq(slot, 0);
    merge_visits_free(merge);
    free(fake.values);
}

/* Redis does nothing else meanwhile. */
Test(merge_visits, no_question_is_about_more_than_a_thousand_visitors)
{
    struct merge_visits *merge = merge_visits_new(TIMEOUT_S);
    struct buffer out;
    struct commands commands;
    for (uint32_t v = 0; v < 2500; v++) {
        const struct row row = row_of("shop", NOW_S, v);
        cr_assert(merge_visits_ask(merge, &row, NOW_S, VISIT_ANYWHERE));
    }
    buffer_init(&out);
    cr_expect_eq(merge_visits_write_questions(merge, TAG, &out), 9u);
    cr_assert(commands_read(&out, &commands));
    for (size_t i = 0; i < commands.n; i++) {
        cr_expect_leq(commands.commands[i].n, 2u + 1000);
    }
    commands_release(&commands);
    buffer_release(&out);
    merge_visits_free(merge);
}

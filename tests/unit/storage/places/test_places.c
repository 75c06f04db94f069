#include "storage/places/places.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/job/counted_name.h"
#include "storage/schema/key.h"
#include "tests/lib/commands.h"
#include "tests/lib/row_sites.h"

TestSuite(places, .timeout = 60);

#define AT_S  INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */
#define NOW_S (AT_S + 10)

static const struct secret secret;
static struct core core;
static struct known_hashes known;
static struct places *places;

/* What Redis holds: fields of the hashes, by key. */
static struct stored {
    char key[128];
    char field[64];
    size_t field_n;
    char value[32];
} stored[1000];
static size_t n_stored;
static size_t n_lists; /* were asked for */

/* What is known of the partition: by default no hour is closed. */
static struct places_view view;

static void begin(unsigned partitions)
{
    core.config.max_pages = 8;
    core.config.max_values = 3;
    core.config.max_events = 0;
    core.partitions.n = partitions;
    atomic_store(&core.secret, &secret);
    n_stored = n_lists = 0;
    view = (struct places_view){.known = false};
    known_hashes_release(&known);
    places = places_new(&core);
    cr_assert_not_null(places);
}

static const char *find(struct slice key, struct slice field)
{
    for (size_t i = 0; i < n_stored; i++) {
        if (slice_equal(slice_of(stored[i].key), key) && stored[i].field_n == field.n &&
            memcmp(stored[i].field, field.p, field.n) == 0) {
            return stored[i].value;
        }
    }
    return NULL;
}

static void store(struct slice key, struct slice field, struct slice value)
{
    char *is = (char *)(uintptr_t)find(key, field);
    if (is == NULL) {
        struct stored *s = &stored[n_stored++];
        cr_assert(n_stored < 1000 && key.n < sizeof(s->key) && field.n <= sizeof(s->field));
        memcpy(s->key, key.p, key.n);
        s->key[key.n] = '\0';
        memcpy(s->field, field.p, field.n);
        s->field_n = field.n;
        is = s->value;
    }
    memcpy(is, value.p, value.n);
    is[value.n] = '\0';
}

/* What Redis answers to command @c; the items are in @items. */
static struct reply answer_to(const struct command *c, struct reply items[2000])
{
    static struct reply size;
    struct reply reply = {.type = REPLY_ARRAY, .items = items};
    size = (struct reply){.type = REPLY_INTEGER};
    for (size_t k = 0; k < n_stored && !command_is(c, 0, "HMGET"); k++) {
        bool is = slice_equal(slice_of(stored[k].key), c->words[1]);
        size.integer += is;
        if (is && command_is(c, 0, "ZRANGE")) {
            items[reply.n++] =
                (struct reply){.type = REPLY_TEXT, .text = {stored[k].field, stored[k].field_n}};
        }
    }
    if (command_is(c, 0, "ZCARD")) {
        return size;
    }
    n_lists += command_is(c, 0, "ZRANGE");
    cr_assert(command_is(c, 0, "HMGET") || command_is(c, 0, "ZMSCORE") ||
              (command_is(c, 0, "ZRANGE") && command_number(c, 2) == 0));
    for (size_t k = 2; !command_is(c, 0, "ZRANGE") && k < c->n; k++) {
        const char *value = find(c->words[1], c->words[k]);
        items[reply.n++] = value == NULL
                               ? (struct reply){.type = REPLY_NIL}
                               : (struct reply){.type = REPLY_TEXT, .text = slice_of(value)};
    }
    return reply;
}

/* Answer the questions as Redis would. */
static void answer(void)
{
    static struct reply items[2000];
    struct buffer out;
    struct commands commands;
    buffer_init(&out);
    for (int more = 0; more <= view.reads_counters; more++) {
        size_t n =
            more ? places_write_more(places, "7", &out) : places_write_questions(places, "7", &out);
        if (n == 0) {
            continue;
        }
        cr_assert(commands_read(&out, &commands) && commands.n == n);
        for (size_t i = 0; i < n; i++) {
            struct reply reply = answer_to(&commands.commands[i], items);
            cr_assert(more ? places_take_more(places, i, &reply) : places_take(places, i, &reply));
        }
        commands_release(&commands);
        buffer_clear(&out, 0);
    }
    buffer_release(&out);
}

static int64_t kept_until_ms, kept_ms; /* by the last PEXPIREAT: the instant, and from now on */

/* Carry the commands out. */
static void carry_out(int64_t now_ms)
{
    struct buffer out;
    struct commands commands;
    buffer_init(&out);
    size_t n = places_write(places, "7", now_ms, &out);
    cr_assert(commands_read(&out, &commands) && commands.n == n);
    for (size_t i = 0; i < n; i++) {
        const struct command *c = &commands.commands[i];
        for (size_t k = 2; command_is(c, 0, "HSET") && k < c->n; k += 2) {
            store(c->words[1], c->words[k], c->words[k + 1]);
        }
        if (command_is(c, 0, "PEXPIREAT")) {
            kept_until_ms = command_number(c, 2);
            kept_ms = kept_until_ms - now_ms;
        }
    }
    commands_release(&commands);
    buffer_release(&out);
}

static struct row row_at(int64_t at_s)
{
    return (struct row){.at_s = at_s, .site = row_site_of("s")};
}

static struct place_wanted want(const struct row *row, const char *name)
{
    struct slice text = slice_of(name);
    return (struct place_wanted){row, text, page_hash(SLICE(""), text), PLACES_COUNTS};
}

/* The hour's counters have a name that was counted there, or that of its class. */
static void count(const struct row *row, const char *name, bool has_place)
{
    struct key key;
    char other[1 + NAME_CLASS_MAX];
    struct slice is = slice_of(name);
    key_bucket(&key, "7", KEY_PV, row->site->name,
        bucket_at(row->site->zone, LEVEL_HOUR, row->at_s), SLICE(""));
    store((struct slice){key.p, key.n},
        has_place ? is : counted_name_of_others(counted_name_class(is), other), SLICE("1"));
}

static int64_t fold_ms = NOW_S * 1000; /* when the next fold is */
static int64_t fold_step_ms = 1000;    /* from one fold to the next */

/* Fold names that came at @at_s: a '+' for each that has a place, a '-' for each that has none. */
static const char *fold(int64_t at_s, const char *const *names, size_t n, bool learn)
{
    static char told[64];
    struct row row = row_at(at_s);
    places_begin(places, 7, &known, &view);
    for (size_t i = 0; i < n; i++) {
        struct place_wanted wanted = want(&row, names[i]);
        cr_assert(places_ask(places, &wanted));
    }
    answer();
    places_decide(places);
    for (size_t i = 0; i < n; i++) {
        struct place_wanted wanted = want(&row, names[i]);
        told[i] = places_has(places, &wanted) ? '+' : '-';
    }
    told[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        count(&row, names[i], told[i] == '+');
    }
    carry_out(fold_ms);
    fold_ms += fold_step_ms;
    if (learn) {
        places_learn(places, &known);
    }
    return told;
}

#define FOLD(at_s, learn, ...)                                                                     \
    fold(at_s, (const char *const[]){__VA_ARGS__},                                                 \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), learn)

#define SOURCE(name) "\x02s" name
#define COUNTRY(name)                                                                              \
    "\x02"                                                                                         \
    "c" name

Test(places, the_first_ones_have_one)
{
    begin(4);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a"), SOURCE("b"), SOURCE("a"), SOURCE("c"),
                         SOURCE("d"), SOURCE("b")),
        "++++-+");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("d"), SOURCE("c"), SOURCE("e")), "-+-");
    cr_expect_str_eq(FOLD(AT_S, false, COUNTRY("a"), COUNTRY("d")), "++"); /* another class */
    places_free(places);
}

Test(places, what_is_known_is_not_asked_for)
{
    begin(4);
    cr_expect_str_eq(FOLD(AT_S, true, SOURCE("a"), SOURCE("b")), "++");
    kept_ms = 0;
    n_stored = 0; /* whoever asks would find nothing */
    cr_expect_str_eq(FOLD(AT_S, true, SOURCE("a"), SOURCE("b")), "++");
    cr_expect_eq(kept_ms, 0, "nothing is written");
    known_hashes_forget(&known);
    cr_expect_str_eq(FOLD(AT_S, true, SOURCE("a")), "+");
    cr_expect_gt(kept_ms, 0);
    places_free(places);
}

/* Of another partition, hour or site nothing is known. */
Test(places, what_is_known_is_known_of_one_partition)
{
    struct row row = row_at(AT_S);
    struct place_wanted wanted = want(&row, SOURCE("a"));
    begin(4);
    cr_expect_str_eq(FOLD(AT_S, true, SOURCE("a")), "+"); /* of partition 7 */
    for (unsigned partition = 6; partition <= 8; partition++) {
        places_begin(places, partition, &known, &view);
        cr_assert(places_ask(places, &wanted));
        cr_expect_eq(places_rely_on_known(places), partition == 7, "partition %u", partition);
    }
    row.at_s += 3600;
    places_begin(places, 7, &known, &view);
    cr_assert(places_ask(places, &wanted));
    cr_expect_not(places_rely_on_known(places), "another hour");
    row = row_at(AT_S);
    row.site = row_site_of("t");
    places_begin(places, 7, &known, &view);
    cr_assert(places_ask(places, &wanted));
    cr_expect_not(places_rely_on_known(places), "another site");
    places_free(places);
}

Test(places, pages_are_spread_and_sections_are_not_bounded)
{
    begin(4); /* of 8 pages a partition holds 4 */
    cr_expect_str_eq(FOLD(AT_S, false, "/1", "/2", "/3", "/4", "/5", "\x03section",
                         "\x01"
                         "event"),
        "++++-++");
    places_free(places);
    begin(1);
    cr_expect_str_eq(
        FOLD(AT_S, false, "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"), "++++++++-");
    places_free(places);
}

Test(places, the_hour_before)
{
    begin(4);
    cr_expect_str_eq(
        FOLD(AT_S - 3600, false, SOURCE("a"), SOURCE("b"), SOURCE("c"), SOURCE("d")), "+++-");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z"), SOURCE("w")), "+++-");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a"), SOURCE("w"), SOURCE("d"), SOURCE("b")), "+--+");
    cr_expect_str_eq(FOLD(AT_S + 3600, false, SOURCE("a"), SOURCE("w"), SOURCE("x")), "+++");
    places_free(places);
}

Test(places, a_place_of_the_hour_before_that_came_too_late_is_none)
{
    begin(4);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z"), SOURCE("w")), "+++-");
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("w"), SOURCE("x")), "++"); /* late events */
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("w"), SOURCE("x")), "-+"); /* w was refused before */
    places_free(places);
}

/* Of two folds in one millisecond it is not known which one was first. */
Test(places, a_place_of_the_hour_before_that_may_have_come_too_late_is_none)
{
    begin(4);
    fold_step_ms = 0;
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z"), SOURCE("w")), "+++-");
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("w"), SOURCE("x")), "++");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("w"), SOURCE("x")), "-+");
    places_free(places);
}

/* An hour's places are asked for in the hour behind it, and by late events of a day. */
Test(places, how_long_they_are_kept)
{
    static const int64_t hours_ago[] = {0, 1, 26, 27, 1000, -20};
    begin(4);
    for (size_t i = 0; i < sizeof(hours_ago) / sizeof(hours_ago[0]); i++) {
        int64_t end_s = (AT_S / 3600 + 1 - hours_ago[i]) * 3600;
        cr_expect_str_eq(FOLD(AT_S - 3600 * hours_ago[i], false, SOURCE("a")), "+");
        if (hours_ago[i] <= 26) {
            cr_expect_eq(kept_until_ms, (end_s + 26 * 3600 + 15 * 60) * 1000, "%d hours ago: %d ms",
                (int)hours_ago[i], (int)kept_ms);
        } else {
            cr_expect_eq(kept_ms, 15 * 60 * 1000, "%d hours ago", (int)hours_ago[i]);
        }
    }
    places_free(places);
}

Test(places, once_full_an_hour_stays_so)
{
    begin(4);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a"), SOURCE("b"), SOURCE("c"), SOURCE("d")), "+++-");
    core.config.max_values = 100; /* another configuration */
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("d"), SOURCE("e")), "--");
    places_free(places);
}

Test(places, visits_have_places_of_their_own)
{
    begin(4);
    struct row row = row_at(AT_S);
    cr_expect_str_eq(FOLD(AT_S, false, "/1", "/2", "/3", "/4", "/5"), "++++-");
    places_begin(places, 7, &known, &view);
    struct place_wanted wanted = want(&row, "/5");
    wanted.table = PLACES_STARTS;
    cr_assert(places_ask(places, &wanted));
    answer();
    places_decide(places);
    cr_expect(places_has(places, &wanted));
    places_free(places);
}

Test(places, many_names_are_asked_for_in_pieces)
{
    begin(1);
    core.config.max_pages = 5000;
    struct row row = row_at(AT_S);
    places_begin(places, 7, &known, &view);
    static char names[2500][8];
    for (size_t i = 0; i < 2500; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "/%zu", i);
        struct place_wanted wanted = want(&row, names[i]);
        cr_assert(places_ask(places, &wanted) && places_ask(places, &wanted));
    }
    struct buffer out;
    buffer_init(&out);
    cr_expect(places_write_questions(places, "7", &out) == 6); /* of 1,000, in two hours */
    buffer_release(&out);
    places_free(places);
}

/* ---- closed hours ---- */

/* Hours that end by @until_s are closed and long over, and their counters are read or not. */
static void close_hours(int64_t until_s, bool reads_counters)
{
    view = (struct places_view){.known = true,
        .now_ms = (NOW_S + 30 * 3600) * 1000,
        .retention.keep_s = {KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER},
        .reads_counters = reads_counters};
    view.state.readers_s[LEVEL_HOUR] = view.state.writers_s[LEVEL_HOUR] = until_s;
}

/* The hashes are gone: they expire. */
static void lose_hashes(void)
{
    for (size_t i = 0; i < n_stored; i++) {
        if (strstr(stored[i].key, ":places:") != NULL) {
            stored[i].key[0] = '\0';
        }
    }
}

Test(places, all_names_of_a_closed_hour_have_one_until_its_counters_deny_it)
{
    begin(4);
    close_hours(AT_S + 3600, false);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a"), SOURCE("b"), SOURCE("c"), SOURCE("d")), "++++");
    cr_expect(places_rest_on_counters(places));
    cr_expect_eq(n_stored, 4u, "nothing but the counters");
    cr_expect_str_eq(FOLD(AT_S + 3600, false, SOURCE("e"), SOURCE("f"), SOURCE("g"), SOURCE("h")),
        "+++-", "an hour that is open");
    cr_expect_not(places_rest_on_counters(places));
    cr_expect_str_eq(FOLD(AT_S, false, "\x03section"), "+");
    cr_expect_not(places_rest_on_counters(places), "a section has no cap");
    places_free(places);
}

Test(places, which_hours_are_closed)
{
    begin(4);
    close_hours(AT_S + 3600, false);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a")), "+");
    struct places_view is = view;
    cr_expect(places_hours_are(places, &is));
    is.state.readers_s[LEVEL_HOUR] -= 7200;
    cr_expect_not(places_hours_are(places, &is), "it is open");
    is = view;
    is.retention.keep_s[LEVEL_HOUR] = 40 * 3600;
    cr_expect(places_hours_are(places, &is));
    is.now_ms += 2 * 86400 * 1000;
    cr_expect_not(places_hours_are(places, &is), "its counters have expired");
    is = view;
    is.known = false;
    cr_expect_not(places_hours_are(places, &is));
    is = view;
    is.now_ms = (AT_S / 3600 + 1 + 26) * 3600 * 1000;
    cr_expect(places_hours_are(places, &is));
    is.now_ms--;
    cr_expect_not(places_hours_are(places, &is), "late events are ordinary");
    places_free(places);
}

Test(places, the_counters_of_a_closed_hour_tell_its_places)
{
    begin(4);
    close_hours(AT_S + 3600, false);
    cr_expect_str_eq(
        FOLD(AT_S, false, SOURCE("a"), SOURCE("b"), COUNTRY("x"), COUNTRY("y")), "++++");
    close_hours(AT_S + 3600, true);
    cr_expect_str_eq(
        FOLD(AT_S, false, SOURCE("c"), SOURCE("d"), SOURCE("a"), COUNTRY("z")), "+-++");
    cr_expect_not(places_rest_on_counters(places));
    for (int i = 0; i < 2; i++) { /* once full it stays so, with the hash and without */
        core.config.max_values = 100;
        cr_expect_str_eq(
            FOLD(AT_S, false, SOURCE("d"), SOURCE("e"), SOURCE("b"), COUNTRY("w")), "--++");
        lose_hashes();
    }
    places_free(places);
}

Test(places, the_hour_before_a_closed_one)
{
    begin(4);
    close_hours(AT_S + 3600, true);
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("a"), SOURCE("b"), SOURCE("c")), "+++");
    lose_hashes();
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z"), SOURCE("a")), "++++");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("w"), SOURCE("b")), "-+", "full in the same fold");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("c"), SOURCE("w")), "+-", "full since a fold before");
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("w")), "-");
    places_free(places);
}

Test(places, a_name_that_comes_late_to_the_hour_before_a_closed_one)
{
    begin(4);
    close_hours(AT_S + 3600, true);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z"), SOURCE("w")), "+++-");
    close_hours(AT_S + 3600, false);
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("w"), SOURCE("x")), "++");
    close_hours(AT_S + 3600, true);
    for (int i = 0; i < 2; i++) {
        cr_expect_str_eq(FOLD(AT_S, false, SOURCE("w"), SOURCE("x")), "-+", "w was refused before");
        lose_hashes();
    }
    places_free(places);
}

/* Names that were decided by the hash while the hour was open. */
Test(places, an_hour_that_is_closed_now)
{
    begin(4);
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("a"), SOURCE("b")), "++");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z"), SOURCE("w")), "+++-");
    close_hours(AT_S + 3600, true);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("w"), SOURCE("a"), SOURCE("v"), SOURCE("x")), "-+-+");
    places_free(places);
}

/* The counters may have lost the name since then: its page was deleted. */
Test(places, what_is_known_of_an_open_hour_says_nothing_once_it_is_closed)
{
    begin(4);
    cr_expect_str_eq(FOLD(AT_S, true, SOURCE("a")), "+");
    n_stored = 0;
    struct row row = row_at(AT_S);
    count(&row, SOURCE("refused"), false);
    cr_expect_str_eq(FOLD(AT_S, true, SOURCE("a")), "+", "it is known");
    close_hours(AT_S + 3600, true);
    n_stored = 0;
    count(&row, SOURCE("refused"), false);
    cr_expect_str_eq(FOLD(AT_S, true, SOURCE("a")), "-", "its class is full");
    places_free(places);
}

/* Sections and sums over visits stand in the same tables, and are no pages. */
Test(places, only_names_with_a_cap_are_counted)
{
    begin(4); /* of 8 pages a partition holds 4 */
    close_hours(AT_S + 3600, true);
    cr_expect_str_eq(FOLD(AT_S, false,
                         "\x03"
                         "a",
                         "\x03"
                         "b",
                         "\x05"
                         "e",
                         "/1", "/2"),
        "+++++");
    cr_expect_str_eq(FOLD(AT_S, false, "/3", "/4", "/5"), "++-");
    cr_expect_str_eq(FOLD(AT_S, false,
                         "\x03"
                         "c",
                         "/1", "/5"),
        "++-");
    places_free(places);
}

/* All names are listed only where a class may become full. */
Test(places, a_class_is_counted_when_it_must)
{
    begin(4);
    close_hours(AT_S + 3600, true);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a"), SOURCE("b")), "++");
    cr_expect_eq(n_lists, 0u);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a"), COUNTRY("x"), COUNTRY("y")), "+++");
    cr_expect_eq(n_lists, 2u, "four names, of which three may be countries");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("c"), SOURCE("d")), "+-");
    cr_expect_eq(n_lists, 4u);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("d"), SOURCE("a"), SOURCE("f")), "-+-");
    cr_expect_eq(n_lists, 4u, "it is full");
    places_free(places);
}

Test(places, a_name_of_a_closed_hour_stays_in_the_open_one)
{
    begin(4);
    close_hours(AT_S, false);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z")), "+++");
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("late")), "+");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("late"), SOURCE("w")), "+-");
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("w")), "+");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("w")), "-", "it was refused before");
    places_free(places);
}

/* A place that is kept and does not come to an hour is none in the hour behind it. */
Test(places, the_hour_two_hours_before_keeps_nothing)
{
    begin(4);
    close_hours(AT_S + 7200, true);
    cr_expect_str_eq(FOLD(AT_S - 3600, false, SOURCE("a"), SOURCE("b"), SOURCE("c")), "+++");
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("x"), SOURCE("y"), SOURCE("z"), SOURCE("w")), "+++-");
    cr_expect_str_eq(
        FOLD(AT_S + 3600, false, SOURCE("1"), SOURCE("2"), SOURCE("3"), SOURCE("a"), SOURCE("x")),
        "+++-+");
    places_free(places);
}

/* More names than one question has: what the counters told of a table holds when the next one has
 * names of the other table only. */
Test(places, many_names_of_a_closed_hour)
{
    begin(1);
    core.config.max_pages = 0; /* no cap */
    core.config.max_values = 2000;
    close_hours(AT_S + 3600, true);
    struct row row = row_at(AT_S);
    static char names[1000][16];
    count(&row, SOURCE("refused"), false);
    places_begin(places, 7, &known, &view);
    for (size_t i = 0; i < 1000; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "\x02s%zu", i);
        struct place_wanted wanted = want(&row, names[i]);
        cr_assert(places_ask(places, &wanted));
    }
    struct place_wanted starts = want(&row, COUNTRY("x"));
    starts.table = PLACES_STARTS;
    cr_assert(places_ask(places, &starts));
    answer();
    places_decide(places);
    struct place_wanted wanted = want(&row, names[7]);
    cr_expect_not(places_has(places, &wanted), "its class is full");
    cr_expect(places_has(places, &starts));
    places_free(places);
}

/* An hour that ended between the questions and the decision. */
Test(places, the_hour_before_is_closed_meanwhile)
{
    begin(4);
    close_hours(AT_S - 3600, false);
    cr_expect_str_eq(FOLD(AT_S, false, SOURCE("a")), "+");
    struct places_view is = view;
    cr_expect(places_hours_are(places, &is));
    is.state.readers_s[LEVEL_HOUR] = AT_S / 3600 * 3600;
    cr_expect_not(places_hours_are(places, &is));
    places_free(places);
}

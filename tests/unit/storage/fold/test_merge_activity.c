#include "storage/fold/merge_activity.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/dice.h"
#include "tests/lib/resp_words.h"

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
/* What was known before: an index, and the bit of `active` of one day. */
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

/* One bitmap: whose bits are set, by index, by name, or those of all names. */
static void read_bitmap(size_t site, struct resp_words *keys, struct resp_words *args,
    const size_t *by_name, int64_t n_names)
{
    struct slice key = resp_words_take(keys);
    int64_t expire_ms = resp_words_number(args);
    int64_t day = resp_words_number(args);
    int64_t n = resp_words_number(args);
    size_t action;
    size_t day_number;
    parse_bitmap(key, sites[site], day, &action, &day_number);
    cr_assert_eq(expire_ms, (day + 11) * 86400 * 1000);
    cr_assert(n >= 1 && n <= 1000);
    for (int64_t i = 0; i < n; i++) {
        if (slice_equal(args->words[args->next], SLICE("*"))) {
            (void)resp_words_take(args);
            cr_assert_gt(n_names, 0);
            for (int64_t name = 0; name < n_names; name++) {
                take_bit(&sent[site][action][day_number][by_name[name]]);
            }
            continue;
        }
        int64_t whose = resp_words_number(args);
        cr_assert_geq(whose, -n_names);
        size_t user = whose < 0 ? by_name[-whose - 1] : (size_t)whose;
        cr_assert(whose < 0 || known[site][user]);
        take_bit(&sent[site][action][day_number][user]);
    }
}

/* The whole section; returns how many users go by name. */
static size_t read_section(struct resp_words *keys, struct resp_words *args)
{
    size_t total = 0;
    int64_t n_sites = resp_words_number(args);
    if (n_sites > 0) {
        cr_assert(slice_equal(resp_words_take(keys), SLICE("t:{" TAG "}:acts")));
    }
    for (int64_t s = 0; s < n_sites; s++) {
        size_t by_name[1000];
        struct slice uid = resp_words_take(keys);
        struct slice ids = resp_words_take(keys);
        size_t site = find(sites, SITES, take_after(&uid, "t:{" TAG "}:uid:"));
        take_after(&ids, "t:{" TAG "}:ids:");
        take_after(&ids, sites[site]);
        cr_assert(slice_equal(ids, SLICE(":")));
        int64_t n_names = resp_words_number(args);
        int64_t n_bitmaps = resp_words_number(args);
        cr_assert(n_names >= 0 && n_names <= 1000);
        for (int64_t i = 0; i < n_names; i++) {
            by_name[i] = user_of(resp_words_take(args));
            cr_assert(!known[site][by_name[i]]);
            total++;
        }
        for (int64_t i = 0; i < n_bitmaps; i++) {
            read_bitmap(site, keys, args, by_name, n_names);
        }
    }
    return total;
}

struct noted {
    size_t n, n_names;
};

static void note(void *data, uint32_t number, uint32_t index, int32_t active_day)
{
    struct noted *noted = data;
    (void)number;
    noted->n++;
    noted->n_names += index == USER_INDEX_NONE;
    cr_assert(active_day >= FIRST_DAY && active_day < FIRST_DAY + DAYS);
}

static void add_random(struct merge_activity *merge, struct dice *dice, uint32_t number)
{
    static const struct retention retention = {.keep_s = {0, 0, 10 * 86400, 0}};
    struct slice done[3];
    size_t site = (size_t)dice_below(dice, SITES);
    size_t user = (size_t)(dice_below(dice, USERS) * dice_below(dice, USERS) / USERS);
    size_t day_number = (size_t)dice_below(dice, DAYS);
    struct activity_day day = activity_day_make(zone_utc(), &retention,
        (FIRST_DAY + (int64_t)day_number) * 86400 + dice_below(dice, 86400));
    struct row row = {.at_s = 0,
        .site = slice_of(sites[site]),
        .site_hash = page_hash(slice_of(sites[site]), SLICE("")),
        .user = slice_of(names[user]),
        .actions = done,
        .has_visitor = true,
        .visitor = id_of(site, user)};
    for (int64_t n = dice_below(dice, 3); n > 0; n--) {
        size_t action = (size_t)dice_below(dice, ACTIONS);
        done[row.n_actions++] = slice_of(actions[action]);
        model[site][action][day_number][user] = true;
    }
    model[site][0][day_number][user] = true;
    struct known_user is = {.index = (uint32_t)user, .active_day = known_day[site][user]};
    cr_assert(merge_activity_add(merge, &row, number, &day, known[site][user] ? &is : NULL));
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

Test(merge_activity, every_bit_once_and_no_other)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct merge_activity *merge = merge_activity_new();
    cr_assert(merge != NULL);
    for (size_t u = 0; u < USERS; u++) {
        snprintf(names[u], sizeof(names[u]), "u%zu", u);
    }
    for (int round = 0; round < 12; round++) {
        struct buffer keys;
        struct buffer args;
        struct resp_words key_words;
        struct resp_words arg_words;
        struct noted noted = {0};
        size_t n_keys = 0;
        size_t n_args = 0;
        memset(model, 0, sizeof(model));
        memset(sent, 0, sizeof(sent));
        for (size_t s = 0; s < SITES; s++) {
            for (size_t u = 0; u < USERS; u++) {
                known[s][u] = round > 0 && dice_chance(&dice, 500);
                known_day[s][u] = FIRST_DAY + (int32_t)dice_below(&dice, DAYS);
            }
        }
        merge_activity_clear(merge);
        for (uint32_t n = (uint32_t)dice_below(&dice, round == 1 ? 1 : 12000); n > 0; n--) {
            add_random(merge, &dice, n);
        }
        buffer_init(&keys);
        buffer_init(&args);
        merge_activity_write(merge, TAG, &keys, &n_keys, &args, &n_args);
        cr_assert(resp_words_read(&keys, &key_words) && resp_words_read(&args, &arg_words));
        cr_assert_eq(key_words.n, n_keys);
        cr_assert_eq(arg_words.n, n_args);
        size_t n_names = read_section(&key_words, &arg_words);
        cr_assert(resp_words_over(&key_words) && resp_words_over(&arg_words));
        check_sent(seed);
        merge_activity_users(merge, note, &noted);
        cr_assert_eq(noted.n_names, n_names);
        cr_assert_geq(noted.n, n_names);
        resp_words_release(&key_words);
        resp_words_release(&arg_words);
        buffer_release(&keys);
        buffer_release(&args);
    }
    merge_activity_free(merge);
}

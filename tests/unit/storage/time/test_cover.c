#include "storage/time/cover.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "storage/time/units.h"
#include "tests/lib/utc.h"

#define ALL ((size_t)1 << 30)

/* Where the buckets of the tests are cut; NULL: in UTC. */
static const struct zone *test_zone;

/* "2026-11-20 15:30" */
/* All that a plan is made from. */
struct scene {
    struct window window;
    struct rollup_state state;
    struct retention retention;
    int64_t now_s;
};

static struct scene scene_of(const char *from, const char *to, const char *now)
{
    int64_t now_s = utc(now);
    const int64_t always = KEEP_FOREVER;

    return (struct scene){{utc(from), utc(to)}, rollup_state_initial(now_s),
        {.keep_s = {always, always, always, always}}, now_s};
}

static struct retention retention_of(int64_t minutes_s, int64_t hours_s, int64_t days_s)
{
    return (struct retention){.keep_s = {minutes_s, hours_s, days_s, KEEP_FOREVER}};
}

static struct cover_basis basis_of(const struct scene *scene)
{
    return (struct cover_basis){test_zone == NULL ? zone_utc() : test_zone, &scene->state,
        &scene->retention, scene->now_s, INT64_MAX};
}

static enum cover_result plan(const struct scene *scene, size_t max, struct cover *ret)
{
    const struct cover_basis basis = basis_of(scene);

    return cover_plan(&basis, scene->window, max, ret);
}

static bool outer(const struct scene *scene, struct window *ret)
{
    const struct cover_basis basis = basis_of(scene);

    return cover_outer(&basis, scene->window, ret);
}

/* The cover has exactly these counts and tiles the window. */
static void check_counts(
    const struct scene *scene, unsigned minutes, unsigned hours, unsigned days, unsigned months)
{
    const unsigned expected[LEVELS] = {minutes, hours, days, months};
    struct cover cover;
    int64_t at_s = scene->window.from_s;

    cover_init(&cover);
    cr_assert_eq(plan(scene, ALL, &cover), COVER_OK);
    for (enum level level = LEVEL_MINUTE; level <= LEVEL_MONTH; level++)
        cr_expect_eq(cover.per_level[level], expected[level], "%s: %u, not %u", level_name(level),
            cover.per_level[level], expected[level]);
    cr_expect_eq(cover.n, (size_t)minutes + hours + days + months);
    for (size_t i = 0; i < cover.n; i++) {
        cr_assert_eq(cover.buckets[i].start_s, at_s);
        at_s = cover.buckets[i].end_s;
    }
    cr_expect_eq(at_s, scene->window.to_s);
    cover_release(&cover);
}

Test(cover, last_day_of_the_article)
{
    struct scene scene = scene_of("2026-11-19 10:56", "2026-11-20 10:56", "2026-11-20 10:56");

    check_counts(&scene, 4 + 56, 23, 0, 0);
}

Test(cover, hour_not_yet_rolled_up_is_read_in_minutes)
{
    struct scene scene = scene_of("2026-11-19 10:56", "2026-11-20 10:56", "2026-11-20 10:56");

    scene.state.readers_s[LEVEL_HOUR] -= HOUR_S;
    check_counts(&scene, 4 + 60 + 56, 22, 0, 0);
}

Test(cover, single_buckets)
{
    struct scene scene = scene_of("2026-10-01 00:00", "2026-11-01 00:00", "2026-11-20 10:56");

    check_counts(&scene, 0, 0, 0, 1);
    scene.window = (struct window){utc("2026-11-19 00:00"), utc("2026-11-20 00:00")};
    check_counts(&scene, 0, 0, 1, 0);
    scene.window = (struct window){utc("2026-11-20 09:00"), utc("2026-11-20 10:00")};
    check_counts(&scene, 0, 1, 0, 0);
    scene.window = (struct window){utc("2026-11-20 10:55"), utc("2026-11-20 10:56")};
    check_counts(&scene, 1, 0, 0, 0);
}

Test(cover, worst_case_of_thirteen_months)
{
    struct scene scene = scene_of("2025-01-01 00:01", "2026-03-31 23:59", "2026-11-20 10:56");

    check_counts(&scene, 59 + 59, 23 + 23, 30 + 30, 13);
}

Test(cover, over_a_leap_day_and_a_new_year)
{
    struct scene scene = scene_of("2024-02-28 22:58", "2024-03-02 01:01", "2026-11-20 10:56");

    check_counts(&scene, 2 + 1, 1 + 1, 2, 0); /* 29 February and 1 March */
    scene.window = (struct window){utc("2023-12-31 23:59"), utc("2024-01-01 00:01")};
    check_counts(&scene, 2, 0, 0, 0);
    scene.window = (struct window){utc("2024-02-01 00:00"), utc("2024-03-01 00:00")};
    check_counts(&scene, 0, 0, 0, 1);
}

Test(cover, years_of_months)
{
    struct scene scene = scene_of("1970-01-01 00:00", "9999-12-01 00:00", "9999-12-31 23:59");

    check_counts(&scene, 0, 0, 0, 8029 * 12 + 11);
    scene.window = (struct window){utc("2016-11-20 10:56"), utc("2026-11-20 10:56")};
    check_counts(&scene, 4 + 56, 13 + 10, 10 + 19, 119);
}

Test(cover, a_cover_is_reused)
{
    struct scene scene = scene_of("2026-11-19 10:56", "2026-11-20 10:56", "2026-11-20 10:56");
    struct cover cover;

    cover_init(&cover);
    cr_assert_eq(plan(&scene, ALL, &cover), COVER_OK);
    scene.window = (struct window){utc("2026-11-20 09:00"), utc("2026-11-20 10:01")};
    cr_assert_eq(plan(&scene, ALL, &cover), COVER_OK);
    cr_expect_eq(cover.n, 2);
    cr_expect_eq(cover.per_level[LEVEL_HOUR], 1);
    cr_expect_eq(cover.per_level[LEVEL_MINUTE], 1);
    cover_release(&cover);
    cr_expect_null(cover.buckets);
    cover_release(&cover);
}

Test(cover, too_many)
{
    struct scene scene = scene_of("2026-11-19 10:56", "2026-11-20 10:56", "2026-11-20 10:56");
    struct cover cover;

    cover_init(&cover);
    cr_expect_eq(plan(&scene, 83, &cover), COVER_OK);
    cr_expect_eq(plan(&scene, 82, &cover), COVER_TOO_MANY);
    cr_expect_eq(plan(&scene, 0, &cover), COVER_TOO_MANY);
    /* nothing is closed: four billion minutes, of which it must not look at many */
    scene.state = (struct rollup_state){{0}, {0}};
    scene.window = (struct window){utc("1971-01-01 00:00"), utc("9999-12-31 23:59")};
    cr_expect_eq(plan(&scene, 1000, &cover), COVER_TOO_MANY);
    cr_expect_leq(cover.capacity, 1024);
    cover_release(&cover);
}

Test(cover, a_longer_keep_time_brings_nothing_back)
{
    struct scene scene = scene_of("2026-11-19 10:56", "2026-11-19 11:56", "2026-11-20 10:56");
    struct cover cover;

    cover_init(&cover);
    scene.retention.before_s[LEVEL_MINUTE] = DAY_S;
    check_counts(&scene, 60, 0, 0, 0);
    scene.retention.until_s[LEVEL_MINUTE] = utc("2026-11-20 00:00");
    scene.now_s -= MINUTE_S;
    check_counts(&scene, 60, 0, 0, 0);
    scene.now_s += 2 * MINUTE_S;
    cr_expect_eq(plan(&scene, ALL, &cover), COVER_NOT_KEPT);
    scene.retention.until_s[LEVEL_MINUTE] = utc("2026-11-19 10:56");
    check_counts(&scene, 60, 0, 0, 0);
    cover_release(&cover);
}

/* now 10:56, the hour 09 closed, minutes kept 30 minutes: those up to 10:26 would be gone, but
 * their hour is open; of the hour 09 none is left. */
Test(cover, minutes_live_as_long_as_their_hour_is_open)
{
    struct scene scene = scene_of("2026-11-20 10:01", "2026-11-20 10:30", "2026-11-20 10:56");
    struct cover cover;

    cover_init(&cover);
    scene.retention = retention_of(30 * MINUTE_S, KEEP_FOREVER, KEEP_FOREVER);
    check_counts(&scene, 29, 0, 0, 0);
    scene.window.from_s = utc("2026-11-20 09:59");
    cr_expect_eq(plan(&scene, ALL, &cover), COVER_NOT_KEPT);
    scene.window.from_s = utc("2026-11-20 09:00");
    check_counts(&scene, 30, 1, 0, 0);
    scene.now_s =
        utc("2026-11-20 10:29"); /* 09:59 ends at 10:00 and is kept up to, not at, 10:30 */
    scene.window.from_s = utc("2026-11-20 09:59");
    check_counts(&scene, 31, 0, 0, 0);
    scene.now_s = utc("2026-11-20 10:30");
    cr_expect_eq(plan(&scene, ALL, &cover), COVER_NOT_KEPT);
    cover_release(&cover);
}

static void check_outer(struct scene *scene, const char *from, const char *to,
    const char *expected_from, const char *expected_to)
{
    struct window window = {0, 0};

    scene->window = (struct window){utc(from), utc(to)};
    cr_assert(outer(scene, &window), "[%s, %s)", from, to);
    cr_expect_eq(
        window.from_s, utc(expected_from), "[%s, %s): from %" PRId64, from, to, window.from_s);
    cr_expect_eq(window.to_s, utc(expected_to), "[%s, %s): to %" PRId64, from, to, window.to_s);
}

Test(cover, outer_moves_to_what_is_kept)
{
    struct scene scene = scene_of("1970-01-01 00:00", "1970-01-01 00:01", "2026-11-20 10:56");

    scene.retention = retention_of(2 * DAY_S, 62 * DAY_S, 1100 * DAY_S);
    /* as it is */
    check_outer(
        &scene, "2026-11-19 10:56", "2026-11-20 10:56", "2026-11-19 10:56", "2026-11-20 10:56");
    /* minutes of 2026-11-18 10:56 to 11:00 are kept for the moment, those before are not */
    check_outer(
        &scene, "2026-11-18 10:56", "2026-11-18 11:30", "2026-11-18 10:56", "2026-11-18 11:30");
    check_outer(
        &scene, "2026-11-18 10:55", "2026-11-18 10:57", "2026-11-18 10:00", "2026-11-18 11:00");
    check_outer(
        &scene, "2026-11-10 08:59", "2026-11-20 10:56", "2026-11-10 08:00", "2026-11-20 10:56");
    check_outer(
        &scene, "2026-11-10 08:59", "2026-11-11 08:01", "2026-11-10 08:00", "2026-11-11 09:00");
    check_outer(
        &scene, "2026-05-10 08:59", "2026-11-11 08:01", "2026-05-10 00:00", "2026-11-11 09:00");
    check_outer(
        &scene, "2020-05-10 08:59", "2020-05-10 09:00", "2020-05-01 00:00", "2020-06-01 00:00");
}

Test(cover, outer_moves_inwards_where_nothing_is_kept)
{
    struct scene scene = scene_of("1970-01-01 00:00", "1970-01-01 00:01", "2026-11-20 10:56");
    struct window window = {7, 7};

    scene.retention = (struct retention){.keep_s = {DAY_S, 2 * DAY_S, 10 * DAY_S, 40 * DAY_S}};
    check_outer(
        &scene, "2020-05-10 08:59", "2026-11-20 10:56", "2026-10-01 00:00", "2026-11-20 10:56");
    check_outer(
        &scene, "2020-05-10 08:59", "2026-10-05 10:56", "2026-10-01 00:00", "2026-11-01 00:00");
    /* if minutes are kept the longest, the past begins within an hour */
    scene.retention = (struct retention){.keep_s = {40 * DAY_S, 0, 0, 0}};
    check_outer(
        &scene, "2020-05-10 08:59", "2026-10-20 08:13", "2026-10-11 10:56", "2026-10-20 08:13");
    scene.retention = (struct retention){.keep_s = {DAY_S, 2 * DAY_S, 10 * DAY_S, 40 * DAY_S}};
    scene.window = (struct window){utc("2020-05-10 08:59"), utc("2026-10-01 00:00")};
    cr_expect_not(outer(&scene, &window));
    cr_expect(window.from_s == 7 && window.to_s == 7);
}

/* The property: random scenes against a naive model that looks at every minute and knows nothing of
 * zones, greed or nesting, only the two conditions of storage/read/README.md, "What may be read".
 * */

static uint64_t random_state;

static uint64_t random_u64(void) /* xorshift64* by Vigna */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static int64_t random_below(int64_t n)
{
    return (int64_t)(random_u64() % (uint64_t)n);
}

/* Of every order of magnitude equally often. */
static int64_t random_size(int64_t max)
{
    int64_t size = max;

    while (size > 1 && random_below(4) != 0)
        size = size / 4 + 1;
    return 1 + random_below(size);
}

/* The stretch of time that the model knows, as minutes with the borders of their buckets. */
struct model {
    const struct scene *scene;
    int64_t first_s;
    size_t n;
    struct model_minute {
        int64_t start_s[LEVELS], end_s[LEVELS];
        bool legal[LEVELS];
    } * minutes;
};

static int64_t local_s(int64_t at_s)
{
    return at_s + zone_offset_s(test_zone, at_s);
}

/* The same in a zone: what its clocks show now and did a minute before.  A date that they showed
 * before (they were set back over midnight) does not begin again. */
static int coarsest_begin_in_zone(int64_t at_s)
{
    int64_t now_s = local_s(at_s), before_s = local_s(at_s - MINUTE_S);
    time_t at = (time_t)now_s;
    struct tm tm;

    if (now_s / HOUR_S == before_s / HOUR_S && now_s == before_s + MINUTE_S)
        return LEVEL_MINUTE;
    for (int64_t back_s = MINUTE_S; back_s <= 3 * HOUR_S; back_s += MINUTE_S)
        if (local_s(at_s - back_s) / DAY_S >= now_s / DAY_S)
            return LEVEL_HOUR;
    gmtime_r(&at, &tm);
    return tm.tm_mday != 1 ? LEVEL_DAY : LEVEL_MONTH;
}

/* The coarsest level of which a bucket begins at this whole minute, by libc's calendar. */
static int coarsest_begin(int64_t at_s)
{
    time_t at = (time_t)at_s;
    struct tm tm;

    if (test_zone != NULL)
        return coarsest_begin_in_zone(at_s);
    gmtime_r(&at, &tm);
    if (tm.tm_min != 0)
        return LEVEL_MINUTE;
    if (tm.tm_hour != 0)
        return LEVEL_HOUR;
    return tm.tm_mday != 1 ? LEVEL_DAY : LEVEL_MONTH;
}

static int64_t floor_border(int level, int64_t at_s)
{
    at_s -= at_s % MINUTE_S;
    while (coarsest_begin(at_s) < level)
        at_s -= MINUTE_S;
    return at_s;
}

static bool model_legal(const struct scene *scene, const struct model_minute *minute, int level)
{
    int parent = level == LEVEL_MONTH ? level : level + 1;
    int64_t keep_s = scene->retention.keep_s[level];
    int64_t until_s = scene->retention.until_s[level], before_s = scene->retention.before_s[level];

    if (until_s != 0 && minute->end_s[level] <= until_s && before_s < keep_s)
        keep_s = before_s;
    if (level != LEVEL_MINUTE && minute->end_s[level] > scene->state.readers_s[level])
        return false;
    return minute->end_s[parent] > scene->state.readers_s[parent] || keep_s == KEEP_FOREVER ||
           scene->now_s < minute->end_s[level] + keep_s;
}

/* From the beginning of the month of the window's start to the end of that of its end. */
static void model_build(struct model *model, const struct scene *scene)
{
    int64_t next_s[LEVELS], end_s = scene->window.to_s;

    while (coarsest_begin(end_s) < LEVEL_MONTH)
        end_s += MINUTE_S;
    model->scene = scene;
    model->first_s = floor_border(LEVEL_MONTH, scene->window.from_s);
    model->n = (size_t)((end_s - model->first_s) / MINUTE_S);
    model->minutes = calloc(model->n, sizeof *model->minutes);
    cr_assert_not_null(model->minutes);
    for (size_t i = 0; i < model->n; i++) {
        int64_t at_s = model->first_s + (int64_t)i * MINUTE_S;
        int begin = coarsest_begin(at_s);

        for (int level = 0; level < LEVELS; level++)
            model->minutes[i].start_s[level] =
                level <= begin ? at_s : model->minutes[i - 1].start_s[level];
    }
    for (int level = 0; level < LEVELS; level++)
        next_s[level] = end_s;
    for (size_t i = model->n; i-- > 0;) {
        struct model_minute *minute = &model->minutes[i];

        for (int level = 0; level < LEVELS; level++) {
            minute->end_s[level] = next_s[level];
            if (minute->start_s[level] == model->first_s + (int64_t)i * MINUTE_S)
                next_s[level] = minute->start_s[level];
        }
        for (int level = 0; level < LEVELS; level++)
            minute->legal[level] = model_legal(scene, minute, level);
    }
}

static size_t model_index(const struct model *model, int64_t at_s)
{
    return (size_t)((at_s - model->first_s) / MINUTE_S);
}

/* The fewest buckets that tile @window, by dynamic programming over its minutes; SIZE_MAX: none. */
static size_t model_fewest(const struct model *model, struct window window)
{
    size_t n = (size_t)((window.to_s - window.from_s) / MINUTE_S);
    size_t *fewest = malloc((n + 1) * sizeof *fewest), result;

    cr_assert_not_null(fewest);
    fewest[0] = 0;
    for (size_t i = 1; i <= n; i++) {
        int64_t end_s = window.from_s + (int64_t)i * MINUTE_S;
        const struct model_minute *last = &model->minutes[model_index(model, end_s) - 1];

        fewest[i] = SIZE_MAX;
        for (int level = 0; level < LEVELS; level++) {
            size_t before;

            if (!last->legal[level] || last->end_s[level] != end_s ||
                last->start_s[level] < window.from_s)
                continue;
            before = fewest[(last->start_s[level] - window.from_s) / MINUTE_S];
            if (before != SIZE_MAX && before + 1 < fewest[i])
                fewest[i] = before + 1;
        }
    }
    result = fewest[n];
    free(fewest);
    return result;
}

/* The smallest tiled window around the kept part: what every minute needs at the least, until no
 * minute needs more.  False if nothing is kept. */
static bool model_outer(const struct model *model, struct window *ret)
{
    struct window window = model->scene->window, before;
    size_t i;

    for (int64_t at_s = window.from_s; at_s < window.to_s; at_s += MINUTE_S) {
        const bool *legal = model->minutes[model_index(model, at_s)].legal;

        if (!legal[0] && !legal[1] && !legal[2] && !legal[3])
            window.from_s = at_s + MINUTE_S;
    }
    if (window.from_s == window.to_s)
        return false;
    do {
        before = window;
        for (i = model_index(model, before.from_s); i < model_index(model, before.to_s); i++) {
            const struct model_minute *minute = &model->minutes[i];
            int level = 0;

            while (level < LEVEL_MONTH && !minute->legal[level])
                level++;
            if (minute->start_s[level] < window.from_s)
                window.from_s = minute->start_s[level];
            if (minute->end_s[level] > window.to_s)
                window.to_s = minute->end_s[level];
        }
    } while (window.from_s != before.from_s || window.to_s != before.to_s);
    *ret = window;
    return true;
}

/* Rolled up to now, a little behind, or days to months behind; the levels in their order. */
static struct rollup_state random_rollup_state(int64_t now_s)
{
    struct rollup_state state = {{0}, {0}};
    int64_t at_s = now_s;

    for (int level = LEVEL_HOUR; level <= LEVEL_MONTH; level++) {
        if (random_below(2))
            at_s -= random_below(1 + random_size(80 * DAY_S));
        /* the stamps stop at the ends of other zones' buckets too */
        at_s = test_zone != NULL && random_below(2) ? at_s - at_s % 900 : floor_border(level, at_s);
        state.readers_s[level] = at_s;
        state.writers_s[level] = at_s;
        if (random_below(2)) /* a bucket is closing; to readers it is open as before */
            state.writers_s[level] = bucket_at(zone_utc(), (enum level)level, at_s).end_s;
    }
    return state;
}

static int64_t random_keep_s(int64_t usual_s)
{
    switch (random_below(5)) {
    case 0:
        return KEEP_FOREVER;
    case 1:
        return random_below(usual_s * 2);
    case 2:
        return 0;
    default:
        return random_below(usual_s / MINUTE_S) * MINUTE_S;
    }
}

/* Sometimes a keep time was made longer a while ago. */
static struct retention random_retention(const struct rollup_state *state)
{
    struct retention retention = {.keep_s = {random_keep_s(3 * DAY_S), random_keep_s(30 * DAY_S),
                                      random_keep_s(60 * DAY_S), random_keep_s(40 * DAY_S)}};

    for (int level = 0; level < LEVELS; level++) {
        int parent = level == LEVEL_MONTH ? level : level + 1;

        if (random_below(4) != 0)
            continue;
        retention.until_s[level] = state->readers_s[parent] - random_below(3 * DAY_S);
        retention.before_s[level] = random_below(3 * DAY_S);
    }
    return retention;
}

static struct scene random_scene(void)
{
    struct scene scene = {.now_s = utc("2023-06-01 00:00") + random_below(900 * DAY_S)};
    const int64_t *keep_s = scene.retention.keep_s;
    enum level level = (enum level)random_below(LEVELS);
    int64_t near_s;

    scene.state = random_rollup_state(scene.now_s);
    scene.retention = random_retention(&scene.state);
    /* near the places where legality changes: the stamps, now, and what is just being forgotten */
    near_s = random_below(2) ? scene.state.readers_s[level] : scene.now_s;
    if (random_below(2) && keep_s[level] != KEEP_FOREVER)
        near_s = scene.now_s - keep_s[level];
    if (near_s < utc("2020-01-01 00:00")) /* the stamp of minutes is 0 */
        near_s = scene.now_s;
    if (random_below(8) == 0)
        near_s -= random_below(400 * DAY_S);
    near_s += (random_below(2) ? 1 : -1) * random_size(40 * DAY_S);
    scene.window.from_s = floor_border(random_below(3) ? LEVEL_MINUTE : (int)level, near_s);
    scene.window.to_s = scene.window.from_s + random_size(70 * DAY_S / MINUTE_S) * MINUTE_S;
    return scene;
}

/* The cover tiles the window with legal buckets, as few as possible. */
static bool cover_right(const struct model *model, const struct cover *cover, size_t fewest)
{
    int64_t at_s = model->scene->window.from_s;
    uint32_t per_level[LEVELS] = {0};

    if (cover->n != fewest)
        return false;
    for (size_t i = 0; i < cover->n; i++) {
        struct bucket bucket = cover->buckets[i];
        const struct model_minute *minute = &model->minutes[model_index(model, at_s)];

        if (bucket.start_s != at_s || minute->start_s[bucket.level] != at_s ||
            minute->end_s[bucket.level] != bucket.end_s || !minute->legal[bucket.level])
            return false;
        per_level[bucket.level]++;
        at_s = bucket.end_s;
    }
    return at_s == model->scene->window.to_s &&
           memcmp(per_level, cover->per_level, sizeof per_level) == 0;
}

/* What is wrong with this scene's plan, or NULL. */
static const char *scene_fault(const struct model *model, struct cover *cover)
{
    struct scene scene = *model->scene;
    size_t fewest = model_fewest(model, scene.window);
    enum cover_result result = plan(&scene, ALL, cover);
    struct window window, expected;
    bool kept = outer(&scene, &window);

    if (result != (fewest == SIZE_MAX ? COVER_NOT_KEPT : COVER_OK))
        return "result";
    if (result == COVER_OK && !cover_right(model, cover, fewest))
        return "cover";
    if (result == COVER_OK && plan(&scene, fewest - 1, cover) != COVER_TOO_MANY)
        return "too many";
    if (kept != model_outer(model, &expected))
        return "outer: kept";
    if (!kept)
        return NULL;
    if (window.from_s != expected.from_s || window.to_s != expected.to_s)
        return "outer: window";
    scene.window = window;
    return plan(&scene, ALL, cover) == COVER_OK ? NULL : "outer: cannot be tiled";
}

static uint64_t seed_of_run(void)
{
    const char *text = getenv("TALLYD_TEST_SEED");

    return text ? strtoull(text, NULL, 0) : UINT64_C(20261120);
}

static void agrees_with_brute_force(int scenes)
{
    uint64_t seed = seed_of_run();
    unsigned tiled = 0, moved = 0, gone = 0, scale = 600 / (unsigned)scenes;
    struct cover cover;

    random_state = seed ? seed : 1;
    cover_init(&cover);
    for (int i = 0; i < scenes; i++) {
        struct scene scene = random_scene();
        struct model model;
        struct window window;
        const char *fault;

        model_build(&model, &scene);
        fault = scene_fault(&model, &cover);
        cr_assert_null(fault, "%s: TALLYD_TEST_SEED=%" PRIu64 ", scene %d", fault, seed, i);
        if (plan(&scene, ALL, &cover) == COVER_OK)
            tiled++;
        else if (outer(&scene, &window))
            moved++;
        else
            gone++;
        free(model.minutes);
    }
    cover_release(&cover);
    /* the scenes are worth something only if all three kinds come up */
    cr_expect(tiled > 100 / scale && moved > 100 / scale && gone > 5 / scale,
        "%u %u %u, seed %" PRIu64, tiled, moved, gone, seed);
}

Test(cover, agrees_with_brute_force, .timeout = 60)
{
    agrees_with_brute_force(600);
}

/* In Berlin, in Kathmandu, and where clocks are set back over midnight as St. John's were. */
Test(cover, agrees_with_brute_force_in_zones, .timeout = 60)
{
    const struct zone_change berlin[] = {{utc("2023-10-29 01:00"), HOUR_S},
        {utc("2024-03-31 01:00"), 2 * HOUR_S}, {utc("2024-10-27 01:00"), HOUR_S},
        {utc("2025-03-30 01:00"), 2 * HOUR_S}, {utc("2025-10-26 01:00"), HOUR_S}};
    const struct zone_change stjohns[] = {{utc("2023-11-05 02:31"), -12600},
        {utc("2024-03-10 03:31"), -9000}, {utc("2024-11-03 02:31"), -12600},
        {utc("2025-03-09 03:31"), -9000}, {utc("2025-11-02 02:31"), -12600}};
    const char *fault = NULL;
    struct zone *zones[] = {zone_make("Berlin", 2 * HOUR_S, berlin, 5, false, 0, &fault),
        zone_make("Kathmandu", 20700, NULL, 0, false, 0, &fault),
        zone_make("St_Johns", -9000, stjohns, 5, false, 0, &fault)};

    for (int i = 0; i < 3; i++) {
        cr_assert_not_null(zones[i]);
        test_zone = zones[i];
        agrees_with_brute_force(200);
        zone_free(zones[i]);
    }
}

/* What lies so far ahead that no event can be there needs few keys, though nothing of it is closed.
 */
Test(cover, future_is_coarse)
{
    const struct scene scene = scene_of("2026-11-20 10:00", "2027-02-01 00:00", "2026-11-20 10:56");
    struct cover_basis basis = basis_of(&scene);
    struct cover cover;

    basis.empty_from_s = utc("2026-11-20 11:02");
    cover_init(&cover);
    cr_assert_eq(cover_plan(&basis, scene.window, 1000, &cover), COVER_OK);
    cr_assert_eq(cover.per_level[LEVEL_MINUTE], 60 + 60);
    cr_assert_eq(cover.per_level[LEVEL_HOUR], 12);
    cr_assert_eq(cover.per_level[LEVEL_DAY], 10);
    cr_assert_eq(cover.per_level[LEVEL_MONTH], 2);
    cr_assert_eq(cover.buckets[cover.n - 1].end_s, scene.window.to_s);
    cover_release(&cover);
}

/* Where a tiled window may begin: at each border, and nowhere inside of the finest bucket kept. */
Test(cover, border_is_the_next_place_where_a_window_may_begin)
{
    const struct scene scene = scene_of("2026-01-01 00:00", "2026-11-20 10:00", "2026-11-20 10:56");
    struct cover_basis basis = basis_of(&scene);
    int64_t now_s = utc("2026-11-20 10:56");
    struct cover cover;

    cover_init(&cover);
    for (int64_t at_s = now_s - 70 * 86400; at_s < now_s; at_s += 7 * 3600 + 1260) {
        int64_t border_s = 0;

        at_s -= at_s % 60;
        cr_assert(cover_border(&basis, at_s, &border_s));
        cr_assert(border_s >= at_s && border_s <= now_s + 86400);
        struct window before = {at_s, now_s - now_s % 60}, behind = {border_s, before.to_s};
        if (behind.from_s < behind.to_s) {
            cr_expect_eq(cover_plan(&basis, behind, 10000, &cover), COVER_OK);
        }
        cr_expect_eq(cover_plan(&basis, before, 10000, &cover),
            border_s == at_s ? COVER_OK : COVER_NOT_KEPT);
    }
    cover_release(&cover);
}

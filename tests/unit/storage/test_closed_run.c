#include "storage/closed_run.h"

#include <criterion/criterion.h>

TestSuite(closed_run, .timeout = 60);

#define HOUR_S INT64_C(3600)
#define DAY_S  INT64_C(86400)
#define NOON_S (20000 * DAY_S + 12 * HOUR_S)

/* From yesterday 22:58 to today 12:03, where hours are closed up to noon and days up to midnight.
 */
static struct rollup_state plan(struct cover *cover)
{
    struct rollup_state state = rollup_state_initial(zone_utc(), NOON_S + 200);
    struct retention retention = {
        .keep_s = {KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER}};
    struct cover_basis basis = {zone_utc(), &state, &retention, NOON_S + 200, INT64_MAX};
    struct window window = {NOON_S - 13 * HOUR_S - 120, NOON_S + 180};
    cover_init(cover);
    cr_assert_eq(cover_plan(&basis, window, 1000, cover), COVER_OK);
    return state;
}

Test(closed_run, is_of_one_level_and_ends_where_hours_are_open)
{
    struct cover cover;
    struct rollup_state state = plan(&cover);
    cr_assert_eq(cover.n, 2 + 13 + 3, "minutes, hours, minutes of the open hour");
    cr_expect_eq(closed_run_end(zone_utc(), &state, &cover, 0, cover.n), 2);
    cr_expect_eq(closed_run_end(zone_utc(), &state, &cover, 1, cover.n), 2);
    cr_expect_eq(closed_run_end(zone_utc(), &state, &cover, 2, cover.n), 15);
    cr_expect_eq(closed_run_end(zone_utc(), &state, &cover, 2, 9), 9, "not beyond the end");
    cr_expect_eq(closed_run_end(zone_utc(), &state, &cover, 15, cover.n), 15, "an open minute");
    cover.buckets[7].start_s += 60;
    cr_expect_eq(closed_run_end(zone_utc(), &state, &cover, 2, cover.n), 7, "a gap");
    cover_release(&cover);
}

Test(closed_run, writers_alone_do_not_close_it)
{
    struct cover cover;
    struct rollup_state state = plan(&cover);
    state.readers_s[LEVEL_HOUR] -= HOUR_S; /* the hour before noon is being rolled up */
    cr_expect_eq(closed_run_end(zone_utc(), &state, &cover, 2, cover.n), 14);
    cr_expect(closed_provable(zone_utc(), &state, cover.buckets[13]));
    cr_expect_not(closed_provable(zone_utc(), &state, cover.buckets[14]));
    struct bucket minute = {LEVEL_MINUTE, NOON_S - 60, NOON_S};
    cr_expect_not(closed_provable(zone_utc(), &state, minute), "its hour is not closed");
    cover_release(&cover);
}

static struct cache_id name_of(struct cache *cache, unsigned partition, enum key_kind kind,
    struct slice site, const struct slice *pages, size_t n)
{
    const struct slice *list[2] = {pages, pages + 1};
    struct buffer scratch;
    buffer_init(&scratch);
    struct cache_id id = closed_name(cache, &scratch, partition, kind, site, list, n);
    cr_assert_not(scratch.failed);
    buffer_release(&scratch);
    return id;
}

Test(closed_run, every_question_has_a_name_of_its_own)
{
    const struct slice whole[2] = {SLICE(""), SLICE("")};
    const struct slice ab[2] = {SLICE("/a"), SLICE("/b")};
    const struct slice ba[2] = {SLICE("/b"), SLICE("/a")};
    struct cache *cache = cache_new(1 << 16);
    struct cache_id ids[] = {
        name_of(cache, 3, KEY_PV, SLICE("s"), NULL, 0), /* all pages, each for itself */
        name_of(cache, 3, KEY_PV, SLICE("s"), whole, 1),
        name_of(cache, 3, KEY_UV, SLICE("s"), whole, 1),
        name_of(cache, 4, KEY_PV, SLICE("s"), whole, 1),
        name_of(cache, 3, KEY_PV, SLICE("s.a"), whole, 1),
        name_of(cache, 3, KEY_PV, SLICE("s"), ab, 1),
        name_of(cache, 3, KEY_PV, SLICE("s"), ab, 2),
        name_of(cache, 3, KEY_PV, SLICE("s"), ba, 2),
    };
    size_t n = sizeof(ids) / sizeof(ids[0]);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            cr_expect_neq(memcmp(&ids[i], &ids[j], sizeof(ids[i])), 0, "%zu and %zu", i, j);
        }
    }
    struct cover cover;
    (void)plan(&cover);
    struct cache_id hours = closed_run_id(cache, &ids[0], &cover, 2, 13);
    struct cache_id fewer = closed_run_id(cache, &ids[0], &cover, 2, 12);
    struct cache_id later = closed_run_id(cache, &ids[0], &cover, 3, 12);
    struct cache_id again = closed_run_id(cache, &ids[0], &cover, 2, 13);
    cr_expect_eq(memcmp(&hours, &again, sizeof(hours)), 0);
    cr_expect_neq(memcmp(&hours, &fewer, sizeof(hours)), 0);
    cr_expect_neq(memcmp(&later, &fewer, sizeof(hours)), 0);
    cover_release(&cover);
    cache_free(cache);
}

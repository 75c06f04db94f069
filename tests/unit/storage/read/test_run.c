#include "storage/read/run.h"

#include <criterion/criterion.h>

#include "storage/time/units.h"

TestSuite(remembered_run, .timeout = 60);

#define NOON_S (20000 * DAY_S + 12 * HOUR_S)

/* From yesterday 22:58 to today 12:03, where hours are closed up to noon and days up to midnight,
 * and no minute is over. */
static struct partition_view plan(struct cover *cover)
{
    struct partition_view view = {.known = true, .state = rollup_state_initial(NOON_S + 200)};
    struct retention retention = {
        .keep_s = {KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER}};
    struct cover_basis basis = {zone_utc(), &view.state, &retention, NOON_S + 200, INT64_MAX};
    struct window window = {NOON_S - 13 * HOUR_S - 120, NOON_S + 180};
    cover_init(cover);
    cr_assert_eq(cover_plan(&basis, window, 1000, cover), COVER_OK);
    return view;
}

/* The first bucket behind the run that begins at @i; @i: there is none. */
static size_t run_end(
    const struct partition_view *view, const struct cover *cover, size_t i, size_t end)
{
    struct remembered_runs runs = {0};
    cr_assert(runs_find(&runs, zone_utc(), view, cover, i, end, false));
    size_t ret = runs.n > 0 && runs.all[0].first == i ? i + runs.all[0].n : i;
    runs_release(&runs);
    return ret;
}

static bool holds(const struct partition_view *view, enum proof proof, const struct cover *cover,
    size_t first, size_t n)
{
    struct remembered_run run = {.first = first, .n = n, .proof = proof};
    return run_holds(&run, zone_utc(), view, cover);
}

Test(remembered_run, is_of_one_level_and_ends_where_hours_are_open)
{
    struct cover cover;
    struct partition_view view = plan(&cover);
    cr_assert_eq(cover.n, 2 + 13 + 3, "minutes, hours, minutes of the open hour");
    cr_expect_eq(run_end(&view, &cover, 0, cover.n), 2);
    cr_expect_eq(run_end(&view, &cover, 1, cover.n), 2);
    cr_expect_eq(run_end(&view, &cover, 2, cover.n), 15);
    cr_expect_eq(run_end(&view, &cover, 2, 9), 9, "not beyond the end");
    cr_expect_eq(run_end(&view, &cover, 15, cover.n), 15, "an open minute");
    cover.buckets[7].start_s += 60;
    cr_expect_eq(run_end(&view, &cover, 2, cover.n), 7, "a gap");
    cover_release(&cover);
}

Test(remembered_run, writers_alone_do_not_close_it)
{
    struct cover cover;
    struct partition_view view = plan(&cover);
    view.state.readers_s[LEVEL_HOUR] -= HOUR_S; /* the hour before noon is being rolled up */
    cr_expect_eq(run_end(&view, &cover, 2, cover.n), 14);
    cr_expect_eq(proof_of(zone_utc(), &view, cover.buckets[13]), PROOF_VER);
    cr_expect_eq(proof_of(zone_utc(), &view, cover.buckets[14]), PROOF_NONE);
    struct bucket minute = {LEVEL_MINUTE, NOON_S - 60, NOON_S};
    cr_expect_eq(proof_of(zone_utc(), &view, minute), PROOF_NONE, "its hour is not closed");
    cover_release(&cover);
}

Test(remembered_run, minutes_that_are_over_are_one_by_their_own_proof)
{
    struct cover cover;
    struct partition_view view = plan(&cover);
    view.over_s = NOON_S + 120;
    cr_expect_eq(run_end(&view, &cover, 0, cover.n), 2, "of a closed hour");
    cr_expect_eq(run_end(&view, &cover, 15, cover.n), 17, "of the open one");
    cr_expect_eq(run_end(&view, &cover, 17, cover.n), 17, "not over yet");
    cr_expect_eq(proof_of(zone_utc(), &view, cover.buckets[0]), PROOF_VER);
    cr_expect_eq(proof_of(zone_utc(), &view, cover.buckets[16]), PROOF_OVER);
    view.over_s = NOON_S + 119;
    cr_expect_eq(proof_of(zone_utc(), &view, cover.buckets[16]), PROOF_NONE);
    cover_release(&cover);
}

Test(remembered_run, two_proofs_side_by_side_are_two_runs)
{
    struct partition_view view = {
        .known = true, .state = rollup_state_initial(NOON_S), .over_s = NOON_S + 120};
    struct bucket minutes[] = {{LEVEL_MINUTE, NOON_S - 120, NOON_S - 60},
        {LEVEL_MINUTE, NOON_S - 60, NOON_S}, {LEVEL_MINUTE, NOON_S, NOON_S + 60},
        {LEVEL_MINUTE, NOON_S + 60, NOON_S + 120}};
    struct cover cover = {.buckets = minutes, .n = 4};
    cr_expect_eq(run_end(&view, &cover, 0, 4), 2);
    cr_expect_eq(run_end(&view, &cover, 2, 4), 4);
    cr_expect(holds(&view, PROOF_VER, &cover, 0, 2));
    cr_expect(holds(&view, PROOF_OVER, &cover, 2, 2));
    cr_expect_not(holds(&view, PROOF_OVER, &cover, 1, 2));
    view.state.readers_s[LEVEL_HOUR] += HOUR_S; /* closed meanwhile: the plan's proof is none */
    cr_expect_not(holds(&view, PROOF_OVER, &cover, 2, 2));
    view.known = false;
    cr_expect_not(holds(&view, PROOF_VER, &cover, 0, 2), "an empty partition has no proof");
}

Test(remembered_run, a_proof_is_compared_where_it_was_relied_on)
{
    struct partition_view planned = {
        .known = true, .ver = {2, "v1"}, .over = {2, "o1"}, .over_held = true};
    struct partition_view now = planned;
    now.over.text[1] = '2';
    cr_expect(proofs_same(0, &planned, &now));
    cr_expect(proofs_same(1u << PROOF_VER, &planned, &now));
    cr_expect_not(proofs_same(1u << PROOF_OVER, &planned, &now));
    cr_expect_not(proofs_same(1u << PROOF_VER | 1u << PROOF_OVER, &planned, &now));
    cr_expect_eq(proof_ver(&now, PROOF_OVER), &now.over);
    cr_expect_eq(proof_ver(&now, PROOF_NONE)->n, 0);
    planned.known = false;
    cr_expect_eq(proof_ver(&planned, PROOF_VER)->n, 0, "an empty partition proves nothing");
}

Test(remembered_run, an_id_is_steady_where_it_was_the_same_twice)
{
    struct partition_view view = {.over_held = true, .fold_held = true, .seen_ms = 1000};
    cr_expect(proof_is_steady(&view, PROOF_OVER, 9000) && proof_is_steady(&view, PROOF_VER, 9000));
    cr_expect(proof_is_steady(&view, PROOF_FOLD, 1000 + FOLD_STEADY_MS - 1));
    cr_expect_not(
        proof_is_steady(&view, PROOF_FOLD, 1000 + FOLD_STEADY_MS), "the next fold is due");
    view.over_held = view.fold_held = false;
    cr_expect(proof_is_steady(&view, PROOF_VER, 1000));
    cr_expect_not(proof_is_steady(&view, PROOF_OVER, 1000));
    cr_expect_not(proof_is_steady(&view, PROOF_FOLD, 1000));
}

Test(remembered_run, open_minutes_are_a_run_where_that_is_wanted)
{
    static struct bucket minutes[] = {
        {LEVEL_MINUTE, 7200, 7260}, {LEVEL_MINUTE, 7260, 7320}, {LEVEL_MINUTE, 7320, 7380}};
    const struct cover three = {.buckets = minutes, .n = 3};
    struct partition_view view = {
        .known = true, .over = {1, "o"}, .over_s = 7260, .fold = {1, "f"}};
    view.state.readers_s[LEVEL_HOUR] = 7200;
    struct remembered_runs runs = {0};
    cr_assert(runs_find(&runs, zone_utc(), &view, &three, 0, 3, true));
    cr_assert_eq(runs.n, 2);
    cr_expect(runs.all[0].proof == PROOF_OVER && runs.all[0].n == 1);
    cr_expect(runs.all[1].proof == PROOF_FOLD && runs.all[1].first == 1 && runs.all[1].n == 2);
    runs.n = 0;
    cr_assert(runs_find(&runs, zone_utc(), &view, &three, 0, 3, false));
    cr_expect_eq(runs.n, 1, "only what is over");
    runs.n = 0;
    view.fold.n = 0;
    cr_assert(runs_find(&runs, zone_utc(), &view, &three, 0, 3, true));
    cr_expect_eq(runs.n, 1, "nothing proves them");
    runs_release(&runs);
}

Test(remembered_run, what_is_recalled_is_passed_over)
{
    struct cover cover;
    struct remembered_runs runs = {0};
    struct partition_view view = plan(&cover);
    view.over_s = NOON_S + 60;
    cr_assert(runs_find(&runs, zone_utc(), &view, &cover, 0, cover.n, false));
    cr_assert_eq(runs.n, 3, "minutes, hours, a minute of the open hour");
    for (size_t i = 0; i < cover.n; i++) {
        size_t run = i < 2 ? 0 : i < 15 ? 1 : 2;
        cr_expect_eq(run_at(runs.all, runs.n, i), i > 15 ? NULL : &runs.all[run], "bucket %zu", i);
        cr_expect_eq(runs_next_unread(&runs, i), i, "nothing is recalled");
    }
    cr_expect_null(run_at(runs.all, 0, 0), "none of none");
    runs.all[0].recalled = runs.all[1].recalled = true;
    cr_expect_eq(runs_next_unread(&runs, 0), 15, "one behind the other");
    cr_expect_eq(runs_next_unread(&runs, 14), 15);
    cr_expect_eq(runs_next_unread(&runs, 15), 15);
    runs.all[2].recalled = true;
    cr_expect_eq(runs_next_unread(&runs, 3), 16);
    runs_release(&runs);
    cover_release(&cover);
}

static struct cache_id name_of(struct cache *cache, unsigned partition, enum key_kind kind,
    struct slice site, const struct slice *pages, size_t n)
{
    const struct slice *list[2] = {pages, pages + 1};
    struct buffer scratch;
    buffer_init(&scratch);
    struct cache_id id = run_name(cache, &scratch, partition, kind, site, list, n);
    cr_assert_not(scratch.failed);
    buffer_release(&scratch);
    return id;
}

static struct cache_id id_of(struct cache *cache, const struct cache_id *name,
    const struct cover *cover, size_t first, size_t n)
{
    struct remembered_run run = {.first = first, .n = n};
    return run_id(cache, name, cover, &run);
}

Test(remembered_run, every_question_has_a_name_of_its_own)
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
    struct cache_id hours = id_of(cache, &ids[0], &cover, 2, 13);
    struct cache_id fewer = id_of(cache, &ids[0], &cover, 2, 12);
    struct cache_id later = id_of(cache, &ids[0], &cover, 3, 12);
    struct cache_id again = id_of(cache, &ids[0], &cover, 2, 13);
    cr_expect_eq(memcmp(&hours, &again, sizeof(hours)), 0);
    cr_expect_neq(memcmp(&hours, &fewer, sizeof(hours)), 0);
    cr_expect_neq(memcmp(&later, &fewer, sizeof(hours)), 0);
    cover_release(&cover);
    cache_free(cache);
}

/* The name of minutes [from, to) of the hour at @hour_s. */
static struct cache_id minutes_of(
    struct cache *cache, enum proof proof, int64_t hour_s, int64_t from, int64_t to)
{
    static const struct cache_id name = {.bytes = {7}};
    struct bucket buckets[60];
    for (int64_t m = from; m < to; m++) {
        int64_t start_s = hour_s + m * 60;
        buckets[m - from] =
            (struct bucket){.level = LEVEL_MINUTE, .start_s = start_s, .end_s = start_s + 60};
    }
    struct cover cover = {.buckets = buckets, .n = (size_t)(to - from)};
    struct remembered_run run = {.first = 0, .n = cover.n, .proof = proof};
    return run_id(cache, &name, &cover, &run);
}

static bool takes_turns(const struct cache_id *a, const struct cache_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0 && a->range != b->range;
}

/* What a window that ends now has of minutes is another run each minute.  The new one takes the
 * place of the old one.  Runs that one window has at the same time do not. */
Test(remembered_run, a_moving_windows_minutes_take_turns)
{
    const int64_t hour_s = INT64_C(1795186800);
    struct cache *cache = cache_new(1 << 16);
    struct cache_id over = minutes_of(cache, PROOF_OVER, hour_s, 0, 20);
    struct cache_id again = minutes_of(cache, PROOF_OVER, hour_s, 0, 20);
    struct cache_id next = minutes_of(cache, PROOF_OVER, hour_s, 0, 21);
    cr_expect_eq(memcmp(&over, &again, sizeof(over)), 0);
    cr_expect(takes_turns(&over, &next), "the open hour grows");
    struct cache_id open = minutes_of(cache, PROOF_FOLD, hour_s, 20, 22);
    struct cache_id next_open = minutes_of(cache, PROOF_FOLD, hour_s, 21, 23);
    cr_expect(takes_turns(&open, &next_open), "the minutes that are not over");
    struct cache_id first = minutes_of(cache, PROOF_VER, hour_s, 21, 60);
    struct cache_id next_first = minutes_of(cache, PROOF_VER, hour_s, 22, 60);
    cr_expect(takes_turns(&first, &next_first), "the window's first minutes");
    struct cache_id before = minutes_of(cache, PROOF_VER, hour_s, 0, 21);
    const struct cache_id all[] = {
        over, open, first, before, minutes_of(cache, PROOF_VER, hour_s + 3600, 21, 60)};
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = i + 1; j < 5; j++) {
            cr_expect_neq(memcmp(all[i].bytes, all[j].bytes, 16), 0, "%zu and %zu", i, j);
        }
    }
    cache_free(cache);
}

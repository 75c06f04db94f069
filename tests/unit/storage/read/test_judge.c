/* Which buckets of a piece may be used, by the state and the time that came with them. */
#include "storage/read/judge.h"

#include <criterion/criterion.h>

#include "storage/time/units.h"

TestSuite(judge, .timeout = 60);

#define NOON_S (20000 * 24 * HOUR_S + 12 * HOUR_S)

/* The hour before noon, two minutes of it, and two minutes of the hour that is open. */
static struct bucket buckets[] = {{LEVEL_HOUR, NOON_S - 2 * HOUR_S, NOON_S - HOUR_S},
    {LEVEL_MINUTE, NOON_S - 2 * MINUTE_S, NOON_S - MINUTE_S},
    {LEVEL_MINUTE, NOON_S - MINUTE_S, NOON_S}, {LEVEL_MINUTE, NOON_S, NOON_S + MINUTE_S},
    {LEVEL_MINUTE, NOON_S + MINUTE_S, NOON_S + 2 * MINUTE_S}};
static const struct cover cover = {.buckets = buckets, .n = 5};

/* Noon, and minutes are kept for an hour. */
static struct partition_view at_noon(void)
{
    return (struct partition_view){.known = true,
        .state = rollup_state_initial(NOON_S),
        .retention = {.keep_s = {HOUR_S, KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER}},
        .ver = {2, "v1"},
        .ver_held = true,
        .over = {2, "o1"}};
}

static struct proved_piece piece_of(enum piece_kind kind, size_t first, size_t n)
{
    return (struct proved_piece){.kind = kind, .cover = &cover, .first = first, .n = n};
}

/* At an instant behind which nothing was written. */
static bool is_plain_at(
    const struct proved_piece *piece, const struct partition_view *view, int64_t now_s)
{
    return piece_may_be_plain(zone_utc(), piece, view, now_s, now_s);
}

static bool is_legal_at(
    const struct proved_piece *piece, const struct partition_view *view, int64_t now_s)
{
    return piece_is_legal(zone_utc(), piece, view, now_s, now_s);
}

static bool may_be_plain(size_t first, size_t n, const struct remembered_runs *runs)
{
    struct partition_view view = at_noon();
    struct proved_piece piece = piece_of(PIECE_PLAIN, first, n);
    piece.runs = runs;
    return is_plain_at(&piece, &view, NOON_S);
}

Test(judge, what_stays_for_longer_than_a_question_takes_is_read_plainly)
{
    cr_expect(may_be_plain(3, 2, NULL));
    cr_expect(may_be_plain(3, 0, NULL), "nothing but the state");
    cr_expect(may_be_plain(0, 1, NULL), "a closed hour that is kept");
    cr_expect_not(may_be_plain(2, 3, NULL), "a minute of a closed hour may go");
    struct remembered_run closed[] = {{.first = 0, .n = 3, .proof = PROOF_VER, .recalled = true}};
    struct remembered_runs runs = {.all = closed, .n = 1};
    cr_expect(may_be_plain(0, 5, &runs), "what is recalled is not read");
    closed[0].recalled = false;
    cr_expect_not(may_be_plain(0, 5, &runs));
    struct partition_view view = at_noon();
    struct proved_piece piece = piece_of(PIECE_PLAIN, 3, 2);
    view.known = false;
    cr_expect_not(is_plain_at(&piece, &view, NOON_S), "nothing is known to be open");
    view = at_noon();
    view.ver_held = false;
    cr_expect_not(is_plain_at(&piece, &view, NOON_S), "it changes just now");
}

Test(judge, a_closed_bucket_is_read_plainly_until_two_hours_before_its_end)
{
    struct partition_view view = at_noon();
    struct proved_piece hour = piece_of(PIECE_PLAIN, 0, 1);
    int64_t end_s = buckets[0].end_s + 24 * HOUR_S;
    view.retention.keep_s[LEVEL_HOUR] = 24 * HOUR_S;
    view.state.writers_s[LEVEL_DAY] = view.state.readers_s[LEVEL_DAY] = NOON_S + 12 * HOUR_S;
    cr_expect(is_plain_at(&hour, &view, end_s - 2 * HOUR_S - 1));
    cr_expect_not(is_plain_at(&hour, &view, end_s - 2 * HOUR_S));
    view.state.readers_s[LEVEL_HOUR] = NOON_S - 2 * HOUR_S;
    cr_expect_not(is_plain_at(&hour, &view, NOON_S), "not complete");
}

Test(judge, the_state_behind_the_data_says_whether_its_hour_was_open)
{
    struct partition_view view = at_noon();
    struct proved_piece plain = piece_of(PIECE_PLAIN, 3, 2);
    struct proved_piece multi = piece_of(PIECE_MULTI, 3, 2);
    cr_expect(is_legal_at(&plain, &view, 0));
    cr_expect(is_legal_at(&plain, &view, INT64_MAX / 2), "at whatever time");
    cr_expect(is_legal_at(&multi, &view, NOON_S));
    view.state.writers_s[LEVEL_HOUR] = view.state.readers_s[LEVEL_HOUR] = NOON_S + HOUR_S;
    cr_expect_not(is_legal_at(&plain, &view, NOON_S + HOUR_S), "closed meanwhile");
    cr_expect(is_legal_at(&multi, &view, NOON_S + HOUR_S), "kept for an hour");
    cr_expect_not(is_legal_at(&multi, &view, NOON_S + 2 * HOUR_S));
}

Test(judge, an_hour_ahead_is_complete_unless_redis_was_ahead_of_it_once)
{
    struct partition_view view = at_noon();
    struct cover ahead = {.n = 1,
        .buckets = (struct bucket[]){bucket_at(zone_utc(), LEVEL_HOUR, NOON_S + 30 * HOUR_S)}};
    struct proved_piece piece = {.kind = PIECE_MULTI, .cover = &ahead, .n = 1};
    cr_expect(piece_is_legal(zone_utc(), &piece, &view, NOON_S, NOON_S));
    cr_expect_not(piece_is_legal(zone_utc(), &piece, &view, NOON_S, NOON_S + 6 * HOUR_S));
}

Test(judge, a_transaction_may_read_what_is_complete_and_kept)
{
    struct partition_view view = at_noon();
    struct proved_piece hour = piece_of(PIECE_MULTI, 0, 1);
    struct proved_piece minutes = piece_of(PIECE_MULTI, 1, 4);
    cr_expect(is_legal_at(&hour, &view, NOON_S));
    cr_expect(is_legal_at(&minutes, &view, NOON_S));
    cr_expect_not(is_legal_at(&minutes, &view, NOON_S + HOUR_S), "not kept");
    view.state.readers_s[LEVEL_HOUR] = NOON_S - 2 * HOUR_S;
    cr_expect_not(is_legal_at(&hour, &view, NOON_S), "not complete");
}

static struct proved_partition planned(unsigned unproved)
{
    return (struct proved_partition){.view = at_noon(), .unproved = unproved};
}

Test(judge, what_was_recalled_holds_by_the_first_reply)
{
    struct proved_partition known = planned(1u << PROOF_VER);
    struct partition_view view = at_noon();
    view.over.text[1] = '2';
    cr_expect(piece_proves_recalled(&known, &view, false), "nothing rested on over");
    cr_expect(known.seen);
    cr_expect_eq(known.unproved, 0);
    cr_expect(ver_equal(&known.view.over, &view.over), "known by the reply");
    known = planned(1u << PROOF_OVER);
    cr_expect_not(piece_proves_recalled(&known, &view, false));
    cr_expect_not(known.seen);
}

Test(judge, what_changed_is_not_remembered)
{
    struct partition_view view = at_noon();
    view.over.text[1] = '2';
    struct proved_partition known = planned(0);
    cr_expect(piece_proves_recalled(&known, &view, false));
    cr_expect_eq(known.changed, 0, "the first transaction has data and proof of one moment");
    view.over.text[1] = '3';
    cr_expect(piece_proves_recalled(&known, &view, false));
    cr_expect_eq(known.changed, 1u << PROOF_OVER, "but not of the moment of the second one");
    known = planned(0);
    cr_expect(piece_proves_recalled(&known, &view, true));
    cr_expect_eq(known.changed, 1u << PROOF_OVER, "data that was read before its proof");
    known = planned(0);
    view = at_noon();
    cr_expect(piece_proves_recalled(&known, &view, true));
    cr_expect_eq(known.changed, 0, "the same before and behind the data");
}

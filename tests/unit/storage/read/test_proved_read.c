/* What a proved reading remembers, and when it relies on what it recalls.  (The conversation with
 * Redis is tried by tests/integration/test_cache.py and those beside it.) */
#include "storage/read/proved_read.h"

#include <criterion/criterion.h>

#include "storage/base/clock.h"
#include "storage/time/units.h"

TestSuite(proved_read, .timeout = 60);

#define NOON_S (20000 * 24 * HOUR_S + 12 * HOUR_S)

static struct core core;
static struct proved_partition known[PARTITIONS_MAX];
static struct bucket hours[] = {
    {LEVEL_HOUR, NOON_S - 2 * HOUR_S, NOON_S - HOUR_S}, {LEVEL_HOUR, NOON_S - HOUR_S, NOON_S}};
static const struct cover cover = {.buckets = hours, .n = 2};
static const struct remembered_run run = {.n = 2, .proof = PROOF_VER};

/* A reading that was planned by a state in which all hours up to noon are closed. */
static struct proved_read planned(void)
{
    struct proved_read r = {.core = &core, .zone = zone_utc(), .known = known};
    core.cache = core.cache != NULL ? core.cache : cache_new(1 << 16);
    known[3] = (struct proved_partition){.view = {.known = true,
                                             .state = rollup_state_initial(NOON_S),
                                             .ver = {2, "v1"},
                                             .over = {2, "o1"}}};
    return r;
}

static void note(void *data, const void *value, size_t n)
{
    (void)value;
    *(size_t *)data = n;
}

static bool recalls(struct proved_read *r, const struct remembered_run *of)
{
    struct cache_id id = cache_id(core.cache, "run", 3);
    size_t n = 0;
    return proved_recall(r, 3, of, &id, note, &n) && n == 5;
}

static bool keeps(struct proved_read *r, const struct remembered_run *of)
{
    struct cache_id id = cache_id(core.cache, "run", 3);
    proved_keep(r, 3, &cover, of, &id, "value", 5);
    return proved_may_keep(r, 3, &cover, of);
}

Test(proved_read, what_is_kept_is_recalled_by_the_same_proof)
{
    struct proved_read r = planned();
    cr_assert(proved_may_recall(&r, 3));
    cr_expect_not(recalls(&r, &run), "nothing was kept");
    cr_expect_eq(known[3].unproved, 0);
    cr_expect(keeps(&r, &run));
    cr_expect(recalls(&r, &run));
    cr_expect_eq(known[3].unproved, 1u << PROOF_VER, "the next reply must have it");
    known[3].view.ver.text[1] = '2';
    cr_expect_not(recalls(&r, &run), "another ver");
    known[3].view.ver.text[1] = '1';
    known[3] = (struct proved_partition){.view = known[3].view, .seen = true};
    cr_expect(recalls(&r, &run));
    cr_expect_eq(known[3].unproved, 0, "a reply of this question has had the proof");
    cache_free(core.cache);
}

Test(proved_read, what_no_one_proof_stands_for_is_not_kept)
{
    struct proved_read r = planned();
    known[3].changed = 1u << PROOF_OVER;
    cr_expect(keeps(&r, &run), "another proof has changed");
    known[3].changed = 1u << PROOF_VER;
    cr_expect_not(keeps(&r, &run));
    known[3].changed = 0;
    known[3].view.state.readers_s[LEVEL_HOUR] -= HOUR_S;
    cr_expect_not(keeps(&r, &run), "an hour is open");
    cache_free(core.cache);
}

Test(proved_read, some_readings_recall_nothing)
{
    struct proved_read r = planned();
    r.forgetful = true;
    cr_expect_not(proved_may_recall(&r, 3));
    r = planned();
    r.full = true;
    cr_expect_not(proved_may_recall(&r, 3));
    r = planned();
    known[3].view.known = false;
    cr_expect_not(proved_may_recall(&r, 3), "an empty partition proves nothing");
    r = planned();
    known[3].view.over_held = false;
    struct remembered_run minutes = {.n = 2, .proof = PROOF_OVER};
    struct cache_id id = cache_id(core.cache, "run", 3);
    cache_put(core.cache, &id, &known[3].view.over, "value", 5);
    cr_expect_not(recalls(&r, &minutes), "over is about to change");
    known[3].view.over_held = true;
    cr_expect(recalls(&r, &minutes));
    cache_free(core.cache);
    core.cache = NULL;
    cr_expect_not(proved_may_recall(&r, 3), "there is no cache");
}

Test(proved_read, an_attempt_holds_until_the_minute_ends)
{
    struct window_question asked = {.to_is_now = true};
    struct proved_read r = {.asked = &asked, .window = {NOON_S - HOUR_S, NOON_S}};
    r.first_s = NOON_S - 1;
    cr_expect(proved_holds(&r));
    r.first_s = NOON_S;
    cr_expect_not(proved_holds(&r), "the next minute has begun");
    asked.to_is_now = false;
    cr_expect(proved_holds(&r));
    r.stale = true;
    cr_expect_not(proved_holds(&r));
}

/* ---- attempts ---- */

struct attempts {
    struct proved_read *r;
    unsigned n, needed;
    bool forgetful[8];
};

static enum storage_err attempt(void *data)
{
    struct attempts *a = data;
    a->forgetful[a->n] = a->r->forgetful;
    a->r->stale = ++a->n < a->needed;
    return STORAGE_OK;
}

/* Late events may come faster than what is recalled holds. */
Test(proved_read, nothing_is_recalled_from_the_third_attempt_on)
{
    struct window_question asked = {.to_is_now = false};
    struct session session = {.redis = NULL};
    struct storage_job job = {.deadline_ms = monotonic_ms() + 10000};
    bool lost = false;
    struct proved_read r = planned();
    struct attempts a = {.r = &r, .needed = 4};
    r.asked = &asked;
    r.session = &session;
    r.job = &job;
    r.ret_lost = &lost;
    buffer_init(&r.out);
    cr_assert_eq(proved_attempts(&r, attempt, &a), STORAGE_OK);
    cr_expect_eq(a.n, 4u);
    cr_expect(!a.forgetful[0] && !a.forgetful[1] && a.forgetful[2] && a.forgetful[3]);
    job.deadline_ms = monotonic_ms() - 1;
    cr_expect_eq(proved_attempts(&r, attempt, &a), STORAGE_LATE);
    cr_expect_eq(a.n, 4u);
    buffer_release(&r.out);
    cache_free(core.cache);
}

#include "storage/time/site_zones.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/time/units.h"
#include "storage/time/write_plan.h"
#include "tests/lib/dice.h"
#include "tests/lib/utc.h"

TestSuite(site_zones, .timeout = 60);

static struct zone *make(
    const char *name, int64_t first_s, const struct zone_change *changes, size_t n)
{
    const char *fault = NULL;
    struct zone *zone = zone_make(name, first_s, changes, n, false, 0, &fault);

    cr_assert_not_null(zone, "%s", fault);
    return zone;
}

/* As in 2026; St. John's changes at 0:01 as it did until 2011, so that midnights come twice. */
struct earth {
    struct zone *berlin, *kathmandu, *stjohns;
};

static struct earth earth_make(void)
{
    return (struct earth){
        make("Europe/Berlin", HOUR_S,
            (struct zone_change[]){
                {utc("2026-03-29 01:00"), 2 * HOUR_S}, {utc("2026-10-25 01:00"), HOUR_S}},
            2),
        make("Asia/Kathmandu", 20700, NULL, 0),
        make("America/St_Johns", -12600,
            (struct zone_change[]){
                {utc("2026-03-08 03:31"), -9000}, {utc("2026-11-01 02:31"), -12600}},
            2),
    };
}

static void earth_free(struct earth *earth)
{
    zone_free(earth->berlin);
    zone_free(earth->kathmandu);
    zone_free(earth->stjohns);
}

Test(site_zones, names_and_text)
{
    struct earth earth = earth_make();
    struct site_zones zones, same;

    cr_assert(site_zones_init(&zones) && site_zones_init(&same));
    cr_expect_str_eq(zones.text, "");
    cr_expect_eq(site_zones_digest(&zones), 0);
    cr_assert(site_zones_add(&zones, SLICE("www"), earth.kathmandu));
    cr_assert(site_zones_add(&zones, SLICE("blog"), earth.berlin));
    cr_assert(site_zones_add(&zones, SLICE("here"), zone_utc()));
    cr_assert(site_zones_add(&zones, SLICE("shop"), earth.berlin));
    cr_expect_str_eq(
        zones.text, "blog=Europe/Berlin shop=Europe/Berlin www=Asia/Kathmandu", "%s", zones.text);
    cr_expect_eq(zones.n_zones, 3, "UTC, Berlin and Kathmandu");
    cr_expect_eq(site_zones_get(&zones, SLICE("shop")), earth.berlin);
    cr_expect_eq(site_zones_get(&zones, SLICE("www")), earth.kathmandu);
    cr_expect_eq(site_zones_get(&zones, SLICE("here")), zone_utc());
    cr_expect_eq(site_zones_get(&zones, SLICE("sho")), zone_utc());
    cr_expect_eq(site_zones_get(&zones, SLICE("shop1")), zone_utc());
    cr_assert(site_zones_add(&same, SLICE("shop"), earth.berlin));
    cr_assert(site_zones_add(&same, SLICE("www"), earth.kathmandu));
    cr_expect_neq(site_zones_digest(&zones), site_zones_digest(&same));
    cr_assert(site_zones_add(&same, SLICE("blog"), earth.berlin));
    cr_expect_eq(site_zones_digest(&zones), site_zones_digest(&same), "whatever the order");
    site_zones_release(&zones);
    site_zones_release(&same);
    earth_free(&earth);
}

static bool list(void *data, struct slice site, struct slice theirs, struct slice ours)
{
    char *text = data;
    size_t n = strlen(text);

    (void)snprintf(text + n, 256 - n, "%.*s:%.*s:%.*s;", (int)site.n, site.p, (int)theirs.n,
        theirs.p, (int)ours.n, ours.p);
    return true;
}

Test(site_zones, compared_with_those_of_others)
{
    static const struct {
        const char *theirs, *differences; /* NULL: none of ours */
    } cases[] = {
        {"shop=Europe/Berlin www=Asia/Kathmandu", ""},
        {"", "shop:UTC:Europe/Berlin;www:UTC:Asia/Kathmandu;"},
        {"shop=Europe/Berlin", "www:UTC:Asia/Kathmandu;"},
        {"www=Asia/Kathmandu", "shop:UTC:Europe/Berlin;"},
        {"a=Europe/Paris shop=Europe/Berlin www=Asia/Kathmandu", "a:Europe/Paris:UTC;"},
        {"shop=Europe/Berlin www=Asia/Kathmandu z=Asia/Tokyo", "z:Asia/Tokyo:UTC;"},
        {"shop=Europe/Paris sip=X www=Asia/Kathmandu",
            "shop:Europe/Paris:Europe/Berlin;sip:X:UTC;"},
        {"shop", NULL},
        {"shop=", NULL},
        {"=Europe/Berlin", NULL},
        {"shop=Europe/Berlin  www=Asia/Kathmandu", NULL},
    };
    struct earth earth = earth_make();
    struct site_zones zones;

    cr_assert(site_zones_init(&zones));
    cr_assert(site_zones_add(&zones, SLICE("shop"), earth.berlin));
    cr_assert(site_zones_add(&zones, SLICE("www"), earth.kathmandu));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256] = "";
        bool ok = site_zones_compare(&zones, slice_of(cases[i].theirs), list, text);

        cr_expect_eq(ok, cases[i].differences != NULL, "\"%s\"", cases[i].theirs);
        cr_expect(
            !ok || strcmp(text, cases[i].differences) == 0, "\"%s\": %s", cases[i].theirs, text);
    }
    site_zones_release(&zones);
    earth_free(&earth);
}

/* ---- the state machine ---- */

/* One partition's passes and late events, as rollup/pass.c and time/write_plan.c do them, with a
 * count of events in place of Redis: what a bucket holds after its pass, and what is written to it.
 */
struct event_seen {
    int64_t at_s;
    const struct zone *zone;
};

struct trial {
    struct site_zones zones;
    struct rollup_state state;
    struct retention retention;
    int64_t now_s;
    struct event_seen events[4000];
    size_t n;
};

/* Where an event is: a bit per level.  Minutes always; else it was written there, or rolled up. */
static unsigned char where[4000];

static bool due(struct trial *t, enum level *ret_level, int64_t *ret_end_s)
{
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        int64_t end_s =
            site_zones_next_end(&t->zones, (enum level)level, t->state.readers_s[level]);
        if (level == LEVEL_HOUR ? end_s + 30 <= t->now_s : end_s <= t->state.readers_s[level - 1]) {
            *ret_level = (enum level)level;
            *ret_end_s = end_s;
            return true;
        }
    }
    return false;
}

/* An event is written where the plan says. */
static void write_event(struct trial *t, struct event_seen event)
{
    struct write_plan plan;

    cr_assert_lt(t->n, sizeof(t->events) / sizeof(t->events[0]));
    write_plan_init(&plan, &t->retention, &t->state);
    write_plan_in(&plan, event.zone);
    write_plan_at(&plan, event.at_s);
    t->events[t->n] = event;
    where[t->n] = 0;
    for (unsigned i = 0; i < plan.n; i++) {
        where[t->n] |= (unsigned char)(1u << plan.targets[i].bucket.level);
    }
    t->n++;
}

/* The buckets of @level that end at @end_s take what their parts hold. */
static void complete(struct trial *t, enum level level, int64_t end_s)
{
    for (size_t i = 0; i < t->n; i++) {
        struct bucket bucket = bucket_at(t->events[i].zone, level, t->events[i].at_s);
        if (bucket.end_s == end_s) {
            bool in_parts = (where[i] >> (level - 1) & 1) != 0;
            where[i] = (unsigned char)((where[i] & ~(1u << level)) | (unsigned)in_parts << level);
        }
    }
}

/* I3: an event is in each bucket that is closed for readers, whatever its zone. */
static bool holds(const struct trial *t)
{
    for (size_t i = 0; i < t->n; i++) {
        for (int level = LEVEL_HOUR; level < LEVELS; level++) {
            struct bucket bucket =
                bucket_at(t->events[i].zone, (enum level)level, t->events[i].at_s);
            bool in = (where[i] >> level & 1) != 0;
            if (closed_for_readers(&t->state, bucket) && !in) {
                return false;
            }
        }
    }
    return true;
}

/* The stamps are in their order. */
static bool ordered(const struct rollup_state *s)
{
    bool ok = true;
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        ok = ok && s->readers_s[level] <= s->writers_s[level] &&
             (level == LEVEL_HOUR || s->writers_s[level] <= s->readers_s[level - 1]);
    }
    return ok;
}

Test(site_zones, every_event_is_in_every_closed_bucket_of_its_zone)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct earth earth = earth_make();
    const struct zone *all[] = {zone_utc(), earth.berlin, earth.kathmandu, earth.stjohns};
    static const char *const begins[] = {
        "2026-10-23 20:17", "2026-10-30 13:01", "2026-03-07 02:59", "2026-03-28 09:42"};
    struct trial *t = malloc(sizeof(*t));

    cr_assert_not_null(t);
    for (size_t run = 0; run < sizeof(begins) / sizeof(begins[0]); run++) {
        int64_t begin_s = utc(begins[run]);
        *t = (struct trial){.state = rollup_state_initial(begin_s),
            .retention = {.keep_s = {KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER}},
            .now_s = begin_s};
        cr_assert(site_zones_init(&t->zones));
        cr_assert(site_zones_add(&t->zones, SLICE("b"), all[1]));
        cr_assert(site_zones_add(&t->zones, SLICE("k"), all[2]));
        cr_assert(site_zones_add(&t->zones, SLICE("s"), all[3]));
        while (t->now_s < begin_s + 4 * DAY_S) {
            enum level level;
            int64_t end_s;
            t->now_s += dice_below(&dice, 3 * HOUR_S);
            for (int i = 0; i < 12; i++) {
                int64_t back_s = dice_below(&dice, 2) == 0 ? 7200 : 40 * DAY_S;
                write_event(t, (struct event_seen){t->now_s - dice_below(&dice, back_s),
                                   all[dice_below(&dice, 4)]});
            }
            while (due(t, &level, &end_s) && dice_below(&dice, 40) != 0) {
                t->state.writers_s[level] = end_s; /* mark */
                write_event(t, (struct event_seen){end_s - 1 - dice_below(&dice, 30 * HOUR_S),
                                   all[dice_below(&dice, 4)]});
                complete(t, level, end_s);
                write_event(t, (struct event_seen){end_s - 1 - dice_below(&dice, 30 * HOUR_S),
                                   all[dice_below(&dice, 4)]});
                t->state.readers_s[level] = end_s; /* advance */
                cr_assert(ordered(&t->state), "TALLYD_TEST_SEED=%llu", (unsigned long long)seed);
            }
            cr_assert(holds(t), "TALLYD_TEST_SEED=%llu", (unsigned long long)seed);
        }
        site_zones_release(&t->zones);
    }
    free(t);
    earth_free(&earth);
}

/* The stamps stop at each end of a bucket of each zone, and at nothing else. */
Test(site_zones, stamps_stop_at_every_end)
{
    struct earth earth = earth_make();
    struct site_zones zones;

    cr_assert(site_zones_init(&zones));
    cr_assert(site_zones_add(&zones, SLICE("b"), earth.berlin));
    cr_assert(site_zones_add(&zones, SLICE("k"), earth.kathmandu));
    cr_assert(site_zones_add(&zones, SLICE("s"), earth.stjohns));
    for (enum level level = LEVEL_HOUR; level <= LEVEL_MONTH; level++) {
        int64_t at_s = utc("2026-10-20 00:00");
        int64_t last_s = utc("2026-12-05 00:00");
        while (at_s < last_s) {
            int64_t next_s = site_zones_next_end(&zones, level, at_s);
            int64_t start_s = site_zones_start(&zones, level, at_s);
            unsigned starts = 0;
            unsigned ends = 0;
            for (size_t z = 0; z < zones.n_zones; z++) {
                struct bucket bucket = bucket_at(zones.zones[z], level, at_s);
                cr_assert_geq(bucket.end_s, next_s, "none is passed over");
                cr_assert_leq(bucket.start_s, start_s, "the last one that began");
                starts += bucket.start_s == start_s;
                ends += bucket.end_s == next_s;
            }
            cr_assert(starts > 0 && ends > 0);
            at_s = next_s;
        }
    }
    site_zones_release(&zones);
    earth_free(&earth);
}

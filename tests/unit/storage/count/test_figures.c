#include "storage/count/figures.h"

#include <criterion/criterion.h>

TestSuite(figures, .timeout = 60);

#define MINUTE_S INT64_C(60)
#define HOUR_S   INT64_C(3600)
#define DAY_S    (20000 * 24 * HOUR_S) /* its first second */

static const struct ver ver = {1, "v"};
static const struct cache_id name = {.bytes = {1}};
static struct cache *cache;
static struct figures figures;

static void setup(void)
{
    cache = cache_new(1 << 16);
}

static void teardown(void)
{
    cache_free(cache);
}

static struct window minute(size_t i)
{
    return (struct window){DAY_S + (int64_t)i * MINUTE_S, DAY_S + (int64_t)(i + 1) * MINUTE_S};
}

/* Minutes [first, first + n) of the day, which have 100 for each minute of their number. */
static void keep(size_t first, size_t n, const struct ver *by)
{
    figures_begin(&figures, cache, &name, by);
    for (size_t i = first; i < first + n; i++) {
        figures_keep(&figures, minute(i), 100 * i);
    }
    figures_end(&figures);
}

/* Are they all known, as they were kept? */
static bool finds(size_t first, size_t n)
{
    bool all = true;
    figures_begin(&figures, cache, &name, &ver);
    for (size_t i = first; i < first + n; i++) {
        uint64_t figure = 7;
        bool found = figures_find(&figures, minute(i), &figure);
        cr_expect_eq(figure, found ? 100 * i : 7, "%zu: %lu", i, (unsigned long)figure);
        all = all && found;
    }
    figures_end(&figures);
    return all;
}

Test(figures, what_lies_in_what_is_known, .init = setup, .fini = teardown)
{
    cr_expect_not(finds(12, 48));
    keep(12, 48, &ver);
    for (size_t first = 12; first < 60; first++) {
        cr_expect(finds(first, 60 - first), "from minute %zu", first);
        cr_expect(finds(12, first - 11));
    }
    cr_expect_not(finds(11, 1), "a minute before it");
    cr_expect_not(finds(60, 1), "and behind it");
    cr_expect_not(finds(12 + 64, 1));
}

Test(figures, what_is_known_grows_together, .init = setup, .fini = teardown)
{
    keep(20, 5, &ver);
    keep(10, 5, &ver);
    cr_expect_not(finds(10, 15), "there is a gap");
    cr_expect(finds(10, 5) && finds(20, 5));
    keep(14, 7, &ver);
    cr_expect(finds(10, 15));
    keep(0, 60, &ver);
    cr_expect(finds(0, 60));
}

Test(figures, another_proof_makes_it_unknown, .init = setup, .fini = teardown)
{
    const struct ver later = {1, "w"};
    keep(0, 60, &later);
    cr_expect_not(finds(0, 60));
    keep(3, 2, &ver);
    cr_expect(finds(3, 2));
    cr_expect_not(finds(2, 1), "nothing of what the other one proved");
}

Test(figures, without_a_proof_nothing_is_known, .init = setup, .fini = teardown)
{
    const struct ver none = {.n = 0};
    uint64_t figure = 7;
    figures_begin(&figures, cache, &name, &none);
    figures_keep(&figures, minute(1), 5);
    cr_expect_not(figures_find(&figures, minute(1), &figure));
    figures_end(&figures);
    cr_expect_eq(cache_bytes(cache), 0u);
}

/* A series of many points is in several values. */
Test(figures, a_day_of_minutes, .init = setup, .fini = teardown)
{
    keep(0, 24 * 60, &ver);
    cr_expect(finds(0, 24 * 60));
    cr_expect_not(finds(24 * 60, 1));
    cr_expect_leq(cache_bytes(cache), 24u * 60 * 16 + 24 * 100, "%zu", cache_bytes(cache));
}

/* In time order, or not. */
Test(figures, in_any_order, .init = setup, .fini = teardown)
{
    figures_begin(&figures, cache, &name, &ver);
    for (size_t i = 0; i < 300; i++) {
        size_t at = i * 77 % 300;
        figures_keep(&figures, minute(at), 100 * at);
    }
    figures_end(&figures);
    cr_expect(finds(0, 300));
}

/* A figure that is kept again is the new one. */
Test(figures, a_newer_figure, .init = setup, .fini = teardown)
{
    uint64_t figure = 0;
    keep(0, 10, &ver);
    figures_begin(&figures, cache, &name, &ver);
    figures_keep(&figures, minute(4), 5);
    cr_expect(figures_find(&figures, minute(4), &figure) && figure == 5, "also before the end");
    figures_end(&figures);
    figures_begin(&figures, cache, &name, &ver);
    cr_expect(figures_find(&figures, minute(4), &figure) && figure == 5);
    cr_expect(figures_find(&figures, minute(3), &figure) && figure == 300);
}

/* Windows that begin at one instant are told apart by their ends. */
Test(figures, lengths_are_told_apart, .init = setup, .fini = teardown)
{
    const struct window hour = {minute(1).from_s, minute(1).from_s + HOUR_S};
    uint64_t figure = 0;
    keep(1, 1, &ver);
    figures_begin(&figures, cache, &name, &ver);
    cr_expect_not(figures_find(&figures, hour, &figure));
    figures_keep(&figures, hour, 5);
    cr_expect(figures_find(&figures, minute(1), &figure) && figure == 100);
    figures_end(&figures);
    cr_expect(figures_find(&figures, hour, &figure) && figure == 5);
}

/* Days of zones, and of both halves of a year, are as many as anybody asks for. */
Test(figures, days_that_begin_at_other_hours, .init = setup, .fini = teardown)
{
    static const int64_t begins_s[] = {0, 5 * 3600 + 1800, -8 * 3600, 3600, 13 * 3600 + 2700};
    for (int round = 0; round < 2; round++) {
        for (size_t zone = 0; zone < sizeof(begins_s) / sizeof(begins_s[0]); zone++) {
            size_t n = 0;
            figures_begin(&figures, cache, &name, &ver);
            for (int64_t day = 0; day < 90; day++) {
                int64_t from_s = DAY_S + begins_s[zone] + day * 24 * HOUR_S;
                struct window window = {from_s, from_s + 24 * HOUR_S};
                uint64_t is = (uint64_t)from_s;
                uint64_t figure = 0;
                n += figures_find(&figures, window, &figure) && figure == is;
                figures_keep(&figures, window, is);
            }
            figures_end(&figures);
            cr_expect_eq(n, round == 0 ? 0u : 90u, "round %d, zone %zu: %zu", round, zone, n);
        }
    }
}

/* 1970 lies within a value, and windows before it are no others. */
Test(figures, before_1970, .init = setup, .fini = teardown)
{
    figures_begin(&figures, cache, &name, &ver);
    for (int64_t i = -100; i < 100; i++) {
        figures_keep(&figures, (struct window){i * 60 + 30, i * 60 + 90}, (uint64_t)(1000 + i));
    }
    for (int64_t i = -100; i < 100; i++) {
        uint64_t figure = 0;
        bool found = figures_find(&figures, (struct window){i * 60 + 30, i * 60 + 90}, &figure);
        cr_expect(found && figure == (uint64_t)(1000 + i), "%d", (int)i);
    }
    figures_end(&figures);
}

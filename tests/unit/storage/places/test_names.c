#include "storage/places/names.h"

#include <criterion/criterion.h>

#include "storage/job/counted_name.h"
#include "tests/lib/row_sites.h"

TestSuite(place_names, .timeout = 60);

#define AT_S INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */

static const struct secret secret;
static struct core core;
static struct known_hashes known;
static struct place_names names;
static const struct counted_value values[] = {{SLICE("\x02sa.example"), 11, true},
    {SLICE("\x02sb.example"), 12, true},
    {SLICE("\x03"
           "blog"),
        13, false}};
static const uint32_t numbers[] = {0, 1, 2};

/* One place for pages, and one for the values of a dimension. */
static void setup(void)
{
    core.config.max_pages = core.config.max_values = 1;
    core.partitions.n = 1;
    atomic_store(&core.secret, &secret);
    cr_assert(place_names_init(&names, &core));
    const struct places_view view = {.known = false};
    cr_assert(place_names_begin(&names, values, 3, 0, &known, &view));
}

static void teardown(void)
{
    place_names_release(&names);
    known_hashes_release(&known);
}

/* A page view of a page, with the first @n_values values. */
static struct row view(struct slice page, uint8_t n_values)
{
    return (struct row){.at_s = AT_S,
        .site = row_site_of("s"),
        .page = page,
        .page_hash = page_hash(SLICE("s"), page),
        .values = numbers,
        .n_values = n_values,
        .is_view = true};
}

static void expect(
    const struct counted_for *is, struct slice name, bool visitors, bool addresses, int line)
{
    cr_expect(slice_equal(is->name, name), "line %d: %.*s", line, (int)is->name.n, is->name.p);
    cr_expect(is->visitors == visitors && is->addresses == addresses, "line %d", line);
}
#define EXPECT(is, name, visitors, addresses) expect(is, SLICE(name), visitors, addresses, __LINE__)

/* What is put together of pages has visitors and addresses, of values it is a number. */
Test(place_names, what_is_put_together, .init = setup, .fini = teardown)
{
    struct counted_for is[PLACE_NAMES_MAX];
    struct row a = view(SLICE("/a"), 3);
    struct row b = view(SLICE("/b"), 3);
    cr_assert(place_names_ask_page(&names, &a) && place_names_ask_page(&names, &b));
    cr_assert(place_names_ask_site(&names, &a) && place_names_ask_visit(&names, &a) &&
              place_names_ask_visit(&names, &b));
    for (int round = 0; round < 2; round++) { /* decided again, all is the same */
        place_names_decide(&names);
        cr_assert_eq(place_names_of_page(&names, &a, is), 1u);
        EXPECT(&is[0], "/a", true, true);
        cr_assert_eq(place_names_of_page(&names, &b, is), 1u);
        EXPECT(&is[0], "\x04", true, true);
        cr_assert_eq(place_names_of_site(&names, &a, is), 4u);
        EXPECT(&is[0], "", true, true);
        EXPECT(&is[1], "\x02sa.example", true, false);
        EXPECT(&is[2], "\x04\x02s", false, false);
        EXPECT(&is[3],
            "\x03"
            "blog",
            true, true);
        cr_expect_eq(names.n_capped, 2u);
        cr_assert_eq(place_names_of_visit(&names, &b, true, is), 3u); /* of visits the first one */
        EXPECT(&is[1], "/b", true, true);
        EXPECT(&is[2],
            "\x03"
            "blog",
            true, true);
        cr_assert_eq(place_names_of_visit(&names, &a, true, is), 3u);
        EXPECT(&is[1], "\x04", true, true);
        cr_assert_eq(place_names_of_visit(&names, &b, false, is), 2u);
        EXPECT(&is[1],
            "\x03"
            "blog",
            true, true);
        cr_expect_eq(names.n_capped, 3u);
    }
}

/* What is remembered of a value is of one hour and one site. */
Test(place_names, a_value_in_another_hour, .init = setup, .fini = teardown)
{
    struct counted_for is[PLACE_NAMES_MAX];
    struct row rows[] = {view(SLICE("/"), 2), view(SLICE("/"), 1), view(SLICE("/"), 1)};
    rows[1].at_s = AT_S / 3600 * 3600 + 3600; /* the first second of the next one.. */
    rows[2].at_s = AT_S / 3600 * 3600 - 1;    /* ..and the last one of the one before */
    rows[1].values = rows[2].values = &numbers[1];
    for (size_t i = 0; i < 3; i++) {
        cr_assert(place_names_ask_site(&names, &rows[i]));
    }
    place_names_decide(&names);
    cr_assert_eq(place_names_of_site(&names, &rows[0], is), 3u);
    EXPECT(&is[2], "\x04\x02s", false, false);
    for (size_t i = 1; i < 3; i++) {
        cr_assert_eq(place_names_of_site(&names, &rows[i], is), 2u);
        EXPECT(&is[1], "\x02sb.example", true, false);
        cr_assert_eq(place_names_of_site(&names, &rows[0], is), 3u);
        EXPECT(&is[2], "\x04\x02s", false, false);
    }
}

/* A value has a place in each site by itself. */
Test(place_names, a_value_in_another_site, .init = setup, .fini = teardown)
{
    struct counted_for is[PLACE_NAMES_MAX];
    struct row here = view(SLICE("/"), 2);
    struct row there = view(SLICE("/"), 1);
    there.site = row_site_of("t");
    there.values = &numbers[1];
    cr_assert(place_names_ask_site(&names, &here) && place_names_ask_site(&names, &there));
    place_names_decide(&names);
    cr_assert_eq(place_names_of_site(&names, &here, is), 3u);
    EXPECT(&is[2], "\x04\x02s", false, false);
    cr_assert_eq(place_names_of_site(&names, &there, is), 2u);
    EXPECT(&is[1], "\x02sb.example", true, false);
}

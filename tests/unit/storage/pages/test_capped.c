#include "storage/pages/capped.h"

#include <criterion/criterion.h>

#include "storage/pages/table.h"

#define HOUR_S INT64_C(3600)

/* Two minutes of the first hour, one of the second, an hour, a day. */
static struct bucket buckets[] = {{LEVEL_MINUTE, 600, 660}, {LEVEL_MINUTE, 660, 720},
    {LEVEL_MINUTE, HOUR_S, HOUR_S + 60}, {LEVEL_HOUR, 2 * HOUR_S, 3 * HOUR_S},
    {LEVEL_DAY, 24 * HOUR_S, 48 * HOUR_S}};
static const struct cover cover = {.buckets = buckets, .n = 5};

/* What may be hidden of a name that is in the buckets @present. */
static uint64_t hidden(const struct capped_runs *runs, uint8_t present, unsigned partition)
{
    struct page_sum sum = {.present = &present};
    return capped_runs_hide(runs, &sum, partition, &cover, zone_utc());
}

Test(capped, a_name_that_is_in_an_hour_is_all_there)
{
    struct arena arena = {0};
    struct capped_runs runs = {0};
    cr_assert(capped_runs_add(&runs, &(struct capped_run){3, 1, 1, 10, NULL}, NULL, &arena));
    cr_expect(hidden(&runs, 0x00, 3) == 10);
    cr_expect(hidden(&runs, 0x01, 3) == 0 && hidden(&runs, 0x02, 3) == 0);
    cr_expect(hidden(&runs, 0x04, 3) == 10); /* in the hour behind */
    cr_expect(hidden(&runs, 0x00, 4) == 0);  /* of another partition */
    cr_assert(capped_runs_add(&runs, &(struct capped_run){3, 3, 1, 5, NULL}, NULL, &arena));
    cr_expect(hidden(&runs, 0x01, 3) == 5 && hidden(&runs, 0x09, 3) == 0);
    cr_expect(capped_runs_pv(&runs) == 15);
    capped_runs_release(&runs);
    arena_release(&arena);
}

Test(capped, a_run_hides_all_of_it_or_nothing)
{
    const uint8_t present = 0x05; /* the first and the third of its buckets */
    struct arena arena = {0};
    struct capped_runs runs = {0};
    cr_assert(capped_runs_add(&runs, &(struct capped_run){0, 0, 3, 7, NULL}, &present, &arena));
    cr_expect(hidden(&runs, 0x01, 0) == 7 && hidden(&runs, 0x04, 0) == 7);
    cr_expect(hidden(&runs, 0x06, 0) == 0);
    capped_runs_release(&runs);
    arena_release(&arena);
}

Test(capped, a_day_may_hide_something_in_any_hour)
{
    struct arena arena = {0};
    struct capped_runs runs = {0};
    cr_assert(capped_runs_add(&runs, &(struct capped_run){0, 4, 1, 9, NULL}, NULL, &arena));
    cr_expect(hidden(&runs, 0x1f, 0) == 9);
    capped_runs_release(&runs);
    arena_release(&arena);
}

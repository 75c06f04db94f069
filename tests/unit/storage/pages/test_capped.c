#include "storage/pages/capped.h"

#include <criterion/criterion.h>

#include "storage/time/units.h"

/* Two minutes of the first hour, one of the second, an hour, a day. */
static struct bucket buckets[] = {{LEVEL_MINUTE, 600, 660}, {LEVEL_MINUTE, 660, 720},
    {LEVEL_MINUTE, HOUR_S, HOUR_S + 60}, {LEVEL_HOUR, 2 * HOUR_S, 3 * HOUR_S},
    {LEVEL_DAY, 24 * HOUR_S, 48 * HOUR_S}};
static const struct cover cover = {.buckets = buckets, .n = 5};

/* What may be hidden of a name that is in the buckets @present. */
static uint64_t hidden(const struct capped_buckets *capped, uint8_t present, unsigned partition)
{
    struct page_sum sum = {.present = &present};
    return capped_buckets_hide(capped, &sum, partition, &cover, zone_utc());
}

Test(capped, a_name_that_is_in_an_hour_is_all_there)
{
    struct capped_buckets capped = {0};
    cr_assert(capped_buckets_add(&capped, &(struct capped_bucket){3, 1, 10}));
    cr_expect(hidden(&capped, 0x00, 3) == 10);
    cr_expect(hidden(&capped, 0x01, 3) == 0 && hidden(&capped, 0x02, 3) == 0);
    cr_expect(hidden(&capped, 0x04, 3) == 10); /* in the hour behind */
    cr_expect(hidden(&capped, 0x00, 4) == 0);  /* of another partition */
    cr_assert(capped_buckets_add(&capped, &(struct capped_bucket){3, 3, 5}));
    cr_expect(hidden(&capped, 0x01, 3) == 5 && hidden(&capped, 0x09, 3) == 0);
    cr_expect(capped_buckets_pv(&capped) == 15);
    capped_buckets_release(&capped);
}

Test(capped, a_day_may_hide_something_in_any_hour)
{
    struct capped_buckets capped = {0};
    cr_assert(capped_buckets_add(&capped, &(struct capped_bucket){0, 4, 9}));
    cr_expect(hidden(&capped, 0x1f, 0) == 9);
    capped_buckets_release(&capped);
}

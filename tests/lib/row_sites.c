#include "tests/lib/row_sites.h"

#include <criterion/criterion.h>

#define SITES_MAX 64

const struct row_site *row_site_make(const char *name, const struct zone *zone, uint64_t hash_mask)
{
    static struct row_site sites[SITES_MAX];
    static size_t n;
    struct slice text = slice_of(name);
    uint64_t hash = page_hash(text, SLICE("")) & hash_mask;
    for (size_t i = 0; i < n; i++) {
        if (slice_equal(sites[i].name, text) && sites[i].zone == zone && sites[i].hash == hash) {
            return &sites[i];
        }
    }
    cr_assert_lt(n, (size_t)SITES_MAX);
    sites[n] = (struct row_site){text, hash, zone};
    return &sites[n++];
}

const struct row_site *row_site_of(const char *name)
{
    return row_site_make(name, zone_utc(), UINT64_MAX);
}

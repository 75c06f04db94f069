#include "storage/time/site_zones.h"

#include <stdlib.h>
#include <xxhash.h>

#include "storage/base/index.h"

static bool use_zone(struct site_zones *zones, const struct zone *zone)
{
    for (size_t i = 0; i < zones->n_zones; i++) {
        if (zones->zones[i] == zone) {
            return true;
        }
    }
    if (!array_reserve(
            &zones->zones, &zones->zones_capacity, zones->n_zones, sizeof(const struct zone *))) {
        return false;
    }
    zones->zones[zones->n_zones++] = zone;
    return true;
}

bool site_zones_init(struct site_zones *zones)
{
    *zones = (struct site_zones){.text = strdup("")};
    return zones->text != NULL && use_zone(zones, zone_utc());
}

void site_zones_release(struct site_zones *zones)
{
    for (size_t i = 0; i < zones->n; i++) {
        free(zones->entries[i].site);
    }
    free(zones->entries);
    free(zones->zones);
    free(zones->text);
    *zones = (struct site_zones){0};
}

/* The first entry that is not before @site. */
static size_t site_position(const struct site_zones *zones, struct slice site)
{
    size_t low = 0;
    size_t high = zones->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(slice_of(zones->entries[middle].site), site) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Write zones->text anew. */
static bool site_zones_describe(struct site_zones *zones)
{
    size_t size = 1;
    for (size_t i = 0; i < zones->n; i++) {
        size += strlen(zones->entries[i].site) + strlen(zone_name(zones->entries[i].zone)) + 2;
    }
    char *text = malloc(size);
    if (text == NULL) {
        return false;
    }
    char *at = text;
    for (size_t i = 0; i < zones->n; i++) {
        at = i == 0 ? at : stpcpy(at, " ");
        at = stpcpy(
            stpcpy(stpcpy(at, zones->entries[i].site), "="), zone_name(zones->entries[i].zone));
    }
    *at = '\0';
    free(zones->text);
    zones->text = text;
    return true;
}

bool site_zones_add(struct site_zones *zones, struct slice site, const struct zone *zone)
{
    size_t at = site_position(zones, site);
    if (zone == zone_utc()) {
        return true;
    }
    if (!use_zone(zones, zone) ||
        !array_reserve(&zones->entries, &zones->capacity, zones->n, sizeof(*zones->entries))) {
        return false;
    }
    char *copy = strndup(site.p, site.n);
    if (copy == NULL) {
        return false;
    }
    memmove(
        zones->entries + at + 1, zones->entries + at, (zones->n - at) * sizeof(*zones->entries));
    zones->entries[at] = (struct site_zone){copy, zone};
    zones->n++;
    return site_zones_describe(zones);
}

const struct zone *site_zones_get(const struct site_zones *zones, struct slice site)
{
    size_t at = site_position(zones, site);
    return at < zones->n && slice_equal(slice_of(zones->entries[at].site), site)
               ? zones->entries[at].zone
               : zone_utc();
}

int64_t site_zones_next_end(const struct site_zones *zones, enum level level, int64_t at_s)
{
    int64_t end_s = INT64_MAX;
    for (size_t i = 0; i < zones->n_zones; i++) {
        struct bucket bucket = bucket_at(zones->zones[i], level, at_s);
        end_s = bucket.end_s < end_s ? bucket.end_s : end_s;
    }
    return end_s;
}

int64_t site_zones_start(const struct site_zones *zones, enum level level, int64_t at_s)
{
    int64_t start_s = INT64_MIN;
    for (size_t i = 0; i < zones->n_zones; i++) {
        struct bucket bucket = bucket_at(zones->zones[i], level, at_s);
        start_s = bucket.start_s > start_s ? bucket.start_s : start_s;
    }
    return start_s;
}

uint64_t site_zones_digest(const struct site_zones *zones)
{
    return zones->n == 0 ? 0 : XXH3_64bits(zones->text, strlen(zones->text)) | 1;
}

/* Cut "site=zone" and a blank off the front of @rest.  False: something else stands there. */
static bool take_entry(struct slice *rest, struct slice *ret_site, struct slice *ret_zone)
{
    *ret_zone = slice_until(rest, ' ');
    return slice_take_until(ret_zone, '=', ret_site) && ret_site->n > 0 && ret_zone->n > 0;
}

bool site_zones_compare(const struct site_zones *zones, struct slice text,
    bool (*differs)(void *data, struct slice site, struct slice theirs, struct slice ours),
    void *data)
{
    size_t ours = 0; /* both lists are in order: the entries before this one are compared */
    while (text.n > 0 || ours < zones->n) {
        struct slice site = {"", 0};
        struct slice theirs = SLICE("UTC");
        struct slice mine = SLICE("UTC");
        struct slice rest = text;
        if (text.n > 0 && !take_entry(&rest, &site, &theirs)) {
            return false;
        }
        int is = -1;
        if (ours < zones->n) {
            is = text.n > 0 ? slice_compare(site, slice_of(zones->entries[ours].site)) : 1;
        }
        if (is >= 0) {
            site = slice_of(zones->entries[ours].site);
            mine = slice_of(zone_name(zones->entries[ours].zone));
            ours++;
        }
        if (is <= 0) {
            text = rest;
        } else {
            theirs = SLICE("UTC");
        }
        if (!slice_equal(theirs, mine) && !differs(data, site, theirs, mine)) {
            return false;
        }
    }
    return true;
}

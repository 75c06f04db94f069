#include "storage/time/zone.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/time/units.h"

#define DAYS_PER_ERA 146097 /* 400 years: after them the calendar repeats */
#define EPOCH_DAY    719468 /* 1970-01-01, counted from 0000-03-01 */

#define OLDEST_S   (-366 * DAY_S) /* changes before this are dropped: no event is that old */
#define OFFSET_MAX (26 * HOUR_S)  /* RFC 8536: from -25 to +26 hours */

struct zone {
    char name[ZONE_NAME_MAX + 1];
    int64_t first_offset_s;
    bool repeats;
    int64_t repeats_s; /* the era [repeats_s, repeats_s + ZONE_ERA_S) stands for all later ones */
    size_t n;
    struct zone_change changes[];
};

const struct zone *zone_utc(void)
{
    static const struct zone utc = {.name = "UTC"};
    return &utc;
}

const char *zone_name(const struct zone *zone)
{
    return zone->name;
}

/* ---- spans ---- */

/* The number of changes at or before @at_s. */
static size_t changes_until(const struct zone *zone, int64_t at_s)
{
    size_t low = 0;
    size_t high = zone->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].at_s <= at_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct zone_span zone_span_at(const struct zone *zone, int64_t at_s)
{
    struct zone_span span = {INT64_MIN, INT64_MAX, zone->first_offset_s};
    if (zone->n == 0) {
        return span;
    }
    int64_t later_s = 0; /* how much later @at_s is than its twin in the era that repeats */
    if (zone->repeats && at_s >= zone->repeats_s + ZONE_ERA_S) {
        later_s = floor_to(at_s - zone->repeats_s, ZONE_ERA_S);
    }
    size_t i = changes_until(zone, at_s - later_s);
    if (i > 0) {
        span.from_s = zone->changes[i - 1].at_s + later_s;
        span.offset_s = zone->changes[i - 1].offset_s;
    }
    if (i < zone->n) {
        span.to_s = zone->changes[i].at_s + later_s;
    }
    return span;
}

int64_t zone_offset_s(const struct zone *zone, int64_t at_s)
{
    return zone_span_at(zone, at_s).offset_s;
}

int64_t zone_first_at(const struct zone *zone, int64_t local_s)
{
    /* No clock on earth shows local_s before that instant. */
    struct zone_span span = zone_span_at(zone, local_s - OFFSET_MAX);
    while (span.to_s != INT64_MAX && span.to_s + span.offset_s <= local_s) {
        span = zone_span_at(zone, span.to_s);
    }
    return local_s - span.offset_s > span.from_s ? local_s - span.offset_s : span.from_s;
}

int64_t zone_utc_of_local(const struct zone *zone, int64_t local_s)
{
    int64_t first_s = zone_first_at(zone, local_s);
    if (first_s + zone_offset_s(zone, first_s) == local_s) {
        return first_s;
    }
    return local_s - zone_offset_s(zone, first_s - 1); /* skipped: first_s is where the gap ends */
}

/* ---- making ---- */

/* Append a change, unless it changes nothing.  Returns NULL, or what is wrong with the change. */
static const char *append_change(struct zone *zone, struct zone_change change)
{
    if (change.at_s < OLDEST_S) {
        zone->first_offset_s = change.offset_s;
        return NULL;
    }
    if (zone->n > 0 && zone->changes[zone->n - 1].at_s == change.at_s) {
        zone->n--; /* of two changes at the same instant the later one holds */
    }
    const struct zone_change *last = zone->n > 0 ? &zone->changes[zone->n - 1] : NULL;
    int64_t before_s = last != NULL ? last->offset_s : zone->first_offset_s;
    if (last != NULL && change.at_s < last->at_s) {
        return "its changes are not in order";
    }
    if (last != NULL && change.at_s < last->at_s + DAY_S && change.offset_s != before_s) {
        return "its offset changes twice within a day";
    }
    if (change.offset_s > before_s + DAY_S + MINUTE_S ||
        change.offset_s < before_s - DAY_S - MINUTE_S) {
        return "its offset changes by more than a day";
    }
    if (change.offset_s != before_s) {
        zone->changes[zone->n++] = change;
    }
    return NULL;
}

/* End the repetition of a zone whose rule changes nothing, such as saving time all the year.  Such
 * a rule has left one change behind at most, at the end of its last year. */
static void end_repeats(struct zone *zone)
{
    size_t first = changes_until(zone, zone->repeats_s - 1);
    if (zone->repeats &&
        (first == zone->n || zone->changes[first].at_s >= zone->repeats_s + ZONE_ERA_S)) {
        zone->repeats = false;
        zone->n = first;
    }
}

struct zone *zone_make(const char *name, int64_t first_offset_s, const struct zone_change *changes,
    size_t n, bool repeats, int64_t repeats_s, const char **ret_fault)
{
    struct zone *zone = calloc(1, sizeof(*zone) + n * sizeof(zone->changes[0]));
    const char *fault = zone == NULL ? "out of memory" : NULL;
    if (zone != NULL) {
        (void)snprintf(zone->name, sizeof(zone->name), "%s", name);
        zone->first_offset_s = floor_to(first_offset_s, MINUTE_S);
        zone->repeats = repeats;
        zone->repeats_s = repeats_s;
    }
    for (size_t i = 0; fault == NULL && i < n; i++) {
        struct zone_change change = {
            floor_to(changes[i].at_s, MINUTE_S), floor_to(changes[i].offset_s, MINUTE_S)};
        fault = change.offset_s > OFFSET_MAX || change.offset_s < -OFFSET_MAX
                    ? "its offset is more than a day"
                    : append_change(zone, change);
    }
    if (fault != NULL) {
        *ret_fault = fault;
        free(zone);
        return NULL;
    }
    end_repeats(zone);
    return zone;
}

void zone_free(struct zone *zone)
{
    free(zone);
}

/* ---- the calendar ---- */

/* Years are counted from March, so that the leap day is the last day of its year and the months
 * before it have the same lengths in every year: 153 days in each five of them. */
int64_t civil_to_days(struct civil_date date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t months_since_march = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t day_of_year = (153 * months_since_march + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - EPOCH_DAY;
}

struct civil_date civil_from_days(int64_t days)
{
    int64_t since = days + EPOCH_DAY;
    int64_t era = floor_div(since, DAYS_PER_ERA);
    int64_t day_of_era = since - era * DAYS_PER_ERA;
    /* Take out the leap days, one in each 4th year, none in each 100th, one in the 400th.  Then all
     * years have 365 days. */
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
    int64_t months_since_march = (5 * day_of_year + 2) / 153;
    int64_t month = months_since_march < 10 ? months_since_march + 3 : months_since_march - 9;
    return (struct civil_date){
        .year = era * 400 + year_of_era + (month <= 2),
        .month = (int)month,
        .day = (int)(day_of_year - (153 * months_since_march + 2) / 5 + 1),
    };
}

int civil_month_days(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

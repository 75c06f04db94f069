#include "storage/time/step.h"

#include "storage/time/units.h"

#define MONDAY 4 /* days from 1970-01-01 to the first Monday */

static const char *const names[] = {
#define X(name, text, length_s) [name] = (text),
    STEPS(X)
#undef X
};

const char *step_name(enum step step)
{
    return names[step];
}

bool step_parse(struct slice text, enum step *ret)
{
    for (int step = STEP_MINUTE; step <= STEP_AUTO; step++) {
        if (slice_equal(text, slice_of(names[step]))) {
            *ret = (enum step)step;
            return true;
        }
    }
    return false;
}

int64_t step_length_s(enum step step)
{
    static const int64_t lengths_s[] = {
#define X(name, text, length_s) [name] = (length_s),
        STEPS(X)
#undef X
    };
    return lengths_s[step];
}

static int64_t week_end(const struct zone *zone, int64_t at_s)
{
    int64_t days = bucket_day(zone, at_s);
    int64_t monday = floor_to(days - MONDAY, 7) + MONDAY;
    return zone_first_at(zone, (monday + 7) * DAY_S);
}

int64_t step_end(const struct zone *zone, enum step step, int64_t at_s)
{
    switch (step) {
    case STEP_5_MINUTES:
    case STEP_15_MINUTES:
        return bucket_hour_part(zone, step_length_s(step), at_s).end_s;
    case STEP_HOUR:
        return bucket_at(zone, LEVEL_HOUR, at_s).end_s;
    case STEP_DAY:
        return bucket_at(zone, LEVEL_DAY, at_s).end_s;
    case STEP_WEEK:
        return week_end(zone, at_s);
    case STEP_MONTH:
        return bucket_at(zone, LEVEL_MONTH, at_s).end_s;
    case STEP_MINUTE:
    case STEP_NONE:
    case STEP_AUTO:
        break;
    }
    return bucket_at(zone, LEVEL_MINUTE, at_s).end_s;
}

size_t step_count(const struct zone *zone, enum step step, struct window window, size_t limit)
{
    size_t n = 0;
    for (int64_t at_s = window.from_s; at_s < window.to_s && n <= limit; n++) {
        at_s = step_end(zone, step, at_s);
    }
    return n;
}

enum step step_fitting(const struct zone *zone, struct window window, size_t limit)
{
    for (int step = STEP_MINUTE; step <= STEP_MONTH; step++) {
        if (step_count(zone, (enum step)step, window, limit) <= limit) {
            return (enum step)step;
        }
    }
    return STEP_NONE;
}

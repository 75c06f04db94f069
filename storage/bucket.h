/* bucket.h - minutes, hours, days and months of a zone, and windows made of them.
 *
 * Layer: storage, pure (no I/O, no clock, no allocation).  Thread-safe.
 * Units: UTC epoch seconds everywhere; intervals are half-open, [start, end).
 * The levels nest: a month is cut into whole days, a day into whole hours, an hour into whole
 * minutes, all of one zone.
 */
#ifndef STORAGE_BUCKET_H
#define STORAGE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/zone.h"

enum level { LEVEL_MINUTE, LEVEL_HOUR, LEVEL_DAY, LEVEL_MONTH };
#define LEVELS 4

struct window {
    int64_t from_s, to_s; /* [from_s, to_s), whole minutes */
};

struct bucket {
    enum level level;
    int64_t start_s, end_s;
};

/* The bucket of @level that holds @at_s (any time within 10^15 s of 1970, also before it). */
struct bucket bucket_at(const struct zone *zone, enum level level, int64_t at_s);

/* "minute", "hour", "day", "month". */
const char *level_name(enum level level);

#endif

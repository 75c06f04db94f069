/* units.h - how many seconds a minute, an hour and a day have; and times as multiples of them.
 *
 * Layer: storage, public.  Thread-safe: no state.  The units are those of UTC without leap seconds;
 * a day of another zone may be longer or shorter (zone.h).
 */
#ifndef STORAGE_TIME_UNITS_H
#define STORAGE_TIME_UNITS_H

#include <stdint.h>

#define MINUTE_S INT64_C(60)
#define HOUR_S   INT64_C(3600)
#define DAY_S    INT64_C(86400)

/* How many whole @unit are in @value, rounded down, also below 0; and the greatest multiple of
 * @unit at or below @value. */
static inline int64_t floor_div(int64_t value, int64_t unit)
{
    return value / unit - (value % unit < 0);
}
static inline int64_t floor_to(int64_t value, int64_t unit)
{
    return floor_div(value, unit) * unit;
}

#endif

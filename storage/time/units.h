/* units.h - how many seconds a minute, an hour and a day have.
 *
 * Layer: storage, public.  Of UTC, in which no second is left out: a day of a zone may be longer or
 * shorter (zone.h).
 */
#ifndef STORAGE_TIME_UNITS_H
#define STORAGE_TIME_UNITS_H

#include <stdint.h>

#define MINUTE_S INT64_C(60)
#define HOUR_S   INT64_C(3600)
#define DAY_S    INT64_C(86400)

#endif

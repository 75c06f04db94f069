/* log_time.h - the times of access logs.
 *
 * Layer: service/formats, pure.  Thread-safe.  All results are UTC epoch seconds, from 1970 to the
 * year 2999.  A later year comes from a broken clock, and its seconds would soon be taken for the
 * milliseconds of an event.  Second 60 counts as 59, and a fraction of a second is cut off.
 */
#ifndef SERVICE_FORMATS_LOG_TIME_H
#define SERVICE_FORMATS_LOG_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define LOG_TIME_APACHE_BYTES (sizeof("dd/Mon/yyyy:HH:MM:SS +hhmm") - 1)

/* Read "10/Oct/2000:13:55:36 -0700", as Apache and nginx's $time_local write it.  @p holds
 * LOG_TIME_APACHE_BYTES bytes. */
bool log_time_apache(const char *p, int64_t *ret_s) MUST_CHECK;

/* Read "2000-10-10" and "13:55:36", both UTC. */
bool log_time_utc(struct slice date, struct slice clock, int64_t *ret_s) MUST_CHECK;

/* Read a time in any form that a server writes: Apache's, RFC 3339, also with an offset "+hhmm" as
 * Caddy's "iso8601" has, or a number since 1970.  A number with 12 digits or more counts
 * milliseconds, with 15 or more microseconds, with 18 or more nanoseconds, else seconds. */
bool log_time_any(struct slice text, int64_t *ret_s) MUST_CHECK;

#endif

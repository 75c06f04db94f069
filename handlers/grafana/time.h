/* time.h - an end of a time range, as Grafana's data source plugins send it.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_GRAFANA_TIME_H
#define HANDLERS_GRAFANA_TIME_H

#include <jansson.h>

#include "handlers/text/timestamp.h"

/* Read @value: RFC 3339, epoch milliseconds as a number or as digits, or a relative time.  Rounding
 * and results are those of timestamp_parameter(). */
bool grafana_time(const json_t *value, const struct zone *zone, int64_t now_ms,
    enum timestamp_round round, int64_t *ret_s, bool *ret_is_now, const char **ret_detail);

#endif

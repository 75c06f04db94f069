/* series_reply.h - a target's series, or table, as Grafana reads it.
 *
 * Layer: handlers, pure.  Thread-safe: no state.  The functions cannot fail: without memory the
 * answer lacks something, and reply_json() makes a 503 of it (see json_memory.h).
 *
 *     a series    {"target":legend,"datapoints":[[value,time],..]}
 *     a table     {"type":"table","columns":[{"text","type"},..],"rows":[[time,value],..]}
 *
 * A time is in milliseconds since 1970.  A series and a table have the refId of their target, and
 * its notices in "meta", if there are any.
 */
#ifndef HANDLERS_GRAFANA_SERIES_REPLY_H
#define HANDLERS_GRAFANA_SERIES_REPLY_H

#include "handlers/grafana/query.h"

/* Add a point with a count to @points, which are the data points or the rows of @target. */
void grafana_add_count(
    json_t *points, const struct grafana_target *target, int64_t at_s, uint64_t value);

/* Add a point with what the visits were like; the metric of @target says which figure of them.
 * @values are METRICS values of a count_job with visit_sums.  If there was no visit the value of
 * the point is null. */
void grafana_add_visits(
    json_t *points, const struct grafana_target *target, int64_t at_s, const uint64_t *values);

/* Put the target's series, or table, behind the others of @answer, a list.  The reference to
 * @points is taken over. */
void grafana_add_series(json_t *answer, const struct grafana_target *target, json_t *points);

#endif

/* breakdown.h - the metric `breakdown`: values of a dimension, or named events, as a table.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A row has the value, its page views (for a named event: how often it came), an upper bound of
 * these where a cap put values together, and its visitors where they are counted.
 */
#ifndef HANDLERS_GRAFANA_BREAKDOWN_H
#define HANDLERS_GRAFANA_BREAKDOWN_H

#include <jansson.h>

#include "handlers/dimension/breakdown_by.h"
#include "storage/job/window_job.h"

struct grafana_breakdown {
    struct slice by; /* the payload's `by`, or the default */
    struct breakdown_by class;
    size_t limit; /* rows at most */
};

/* Read the members `by` and `limit` of a payload.  @by is the former without escapes, and must live
 * as long as @ret.  Returns NULL, or what is wrong (static). */
const char *grafana_breakdown_read(const struct app *app, struct slice site, struct slice by,
    const json_t *limit, struct grafana_breakdown *ret) MUST_CHECK;

/* The job that asks storage for the rows, over the window of @asked. */
struct pages_job grafana_breakdown_job(
    const struct grafana_breakdown *breakdown, const struct window_question *asked);

/* The columns of the table, and its rows as @job has them: new references. */
json_t *grafana_breakdown_columns(const struct grafana_breakdown *breakdown);
json_t *grafana_breakdown_rows(
    const struct grafana_breakdown *breakdown, const struct pages_job *job);

#endif

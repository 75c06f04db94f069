/* visit_figures.h - what the visits of a window were like.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * storage/merge/merge_visits.h defines visits as Plausible does.  A visit counts in the minute in
 * which it begins, and as engaged in the minute of its second event.  So visits that began before
 * the window may be engaged in it.  If more visits are engaged in a window than begin in it, none
 * of those that begin is taken for a bounce.
 */
#ifndef HANDLERS_QUESTION_VISIT_FIGURES_H
#define HANDLERS_QUESTION_VISIT_FIGURES_H

#include <stdbool.h>

#include "storage/job/count_job.h"

struct visit_figures {
    double views_per_visit, bounce_rate, duration_s; /* bounce_rate: a part of 1 */
};

/* Compute the figures from the values of a count_job with visit_sums.  False, with @ret untouched:
 * there was no visit. */
static inline bool visit_figures_of(const uint64_t values[METRICS], struct visit_figures *ret)
{
    uint64_t visits = values[METRIC_VISITS];
    uint64_t engaged = values[METRIC_ENGAGED] < visits ? values[METRIC_ENGAGED] : visits;
    double n = (double)visits;
    if (visits == 0) {
        return false;
    }
    ret->views_per_visit = (double)values[METRIC_PV] / n;
    ret->bounce_rate = (double)(visits - engaged) / n;
    ret->duration_s = (double)values[METRIC_SECONDS] / n;
    return true;
}

#endif

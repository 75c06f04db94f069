/* visit_figures.h - what the visits of a window were like.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * storage/merge/merge_visits.h defines what is counted, as Plausible does.  What a visit gains
 * counts where it gains it, so a window may have visits engaged that began before it: more of
 * them than of its own are as many.
 */
#ifndef HANDLERS_QUESTION_VISIT_FIGURES_H
#define HANDLERS_QUESTION_VISIT_FIGURES_H

#include <stdbool.h>

#include "storage/job/count_job.h"

struct visit_figures {
    double views_per_visit, bounce_rate, duration_s;
};

/* Compute them from a count_job's values with visit_sums.  False: there was no visit, so there are
 * none. */
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

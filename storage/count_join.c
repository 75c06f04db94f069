#include "storage/count_join.h"

#include <stdlib.h>
#include <string.h>

/* What the two functions below know.  A member that belongs to the question and is not compared
 * would give one question the answer to another; one of the answer that is not copied would be
 * lost. */
#if __SIZEOF_POINTER__ == 8
_Static_assert(sizeof(struct count_job) == 208,
    "struct count_job has changed: look after count_same() and count_share()");
#endif

bool count_same(const struct storage_job *a, const struct storage_job *b)
{
    const struct count_job *x = &a->u.count;
    const struct count_job *y = &b->u.count;
    if (x->metric != y->metric || x->all_metrics != y->all_metrics || x->step != y->step ||
        (x->step != STEP_NONE && x->zone != y->zone) || x->window.from_s != y->window.from_s ||
        x->window.to_s != y->window.to_s || x->to_is_now != y->to_is_now ||
        x->round_outer != y->round_outer || x->explain || y->explain || x->set.name.n > 0 ||
        y->set.name.n > 0 || x->n_pages != y->n_pages || !slice_equal(x->site, y->site)) {
        return false;
    }
    for (size_t i = 0; i < x->n_pages; i++) {
        if (!slice_equal(x->pages[i], y->pages[i])) {
            return false;
        }
    }
    return true;
}

bool count_share(const struct storage_job *from, struct storage_job *to)
{
    struct count_point *points = NULL;
    if (from->u.count.points != NULL) {
        points = malloc(from->u.count.n_points * sizeof(*points));
        if (points == NULL) {
            return false;
        }
        memcpy(points, from->u.count.points, from->u.count.n_points * sizeof(*points));
    }
    to->u.count.points = points;
    to->u.count.n_points = from->u.count.n_points;
    to->u.count.used = from->u.count.used;
    to->u.count.value = from->u.count.value;
    memcpy(to->u.count.values, from->u.count.values, sizeof(to->u.count.values));
    to->u.count.answered = from->u.count.answered;
    memcpy(to->u.count.per_level, from->u.count.per_level, sizeof(to->u.count.per_level));
    memcpy(to->detail, from->detail, sizeof(to->detail));
    return true;
}

#include "storage/job/window_job.h"

bool window_question_same(const struct window_question *a, const struct window_question *b)
{
    return slice_equal(a->site, b->site) && a->window.from_s == b->window.from_s &&
           a->window.to_s == b->window.to_s && a->to_is_now == b->to_is_now &&
           a->round_outer == b->round_outer && !a->explain && !b->explain;
}

bool same_pages(const struct slice *a, size_t n_a, const struct slice *b, size_t n_b)
{
    for (size_t i = 0; n_a == n_b && i < n_a; i++) {
        if (!slice_equal(a[i], b[i])) {
            return false;
        }
    }
    return n_a == n_b;
}

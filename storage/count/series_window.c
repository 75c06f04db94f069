#include "storage/count/series_window.h"
#include "storage/read/plan.h"

#include <string.h>

/* What decides in the partitions that are asked, each different one once. */
struct bases {
    struct partition_view views[PARTITIONS_MAX];
    size_t n;
};

static void find_bases(const struct counter *c, struct bases *bases)
{
    bases->n = 0;
    for (size_t i = 0; i < c->n_shards && bases->n < PARTITIONS_MAX; i++) {
        struct partition_view view = core_view(c->core, c->shards[i].partition);
        size_t at = 0;
        while (at < bases->n &&
               (memcmp(&bases->views[at].state, &view.state, sizeof(view.state)) != 0 ||
                   memcmp(&bases->views[at].retention, &view.retention, sizeof(view.retention)) !=
                       0)) {
            at++;
        }
        if (at == bases->n) {
            bases->views[bases->n++] = view;
        }
    }
}

/* The first instant from @at_s on that is a border in all of them.  False: nothing is kept. */
static bool border(
    const struct counter *c, const struct bases *bases, int64_t now_s, int64_t at_s, int64_t *ret_s)
{
    int64_t before_s;
    do {
        before_s = at_s;
        for (size_t i = 0; i < bases->n; i++) {
            struct cover_basis basis = plan_basis(c->zone, &bases->views[i], now_s);
            if (!cover_border(&basis, at_s, &at_s)) {
                return false;
            }
        }
    } while (at_s != before_s);
    *ret_s = at_s;
    return true;
}

bool series_window(const struct counter *c, const struct zone *zone, enum step step,
    struct window outer, int64_t now_s, struct window *ret)
{
    struct bases bases;
    int64_t from_s = outer.from_s;
    if (step_count(zone, step, outer, STEP_POINTS_MAX) > STEP_POINTS_MAX) {
        return false;
    }
    find_bases(c, &bases);
    for (int64_t at_s = step_end(zone, step, outer.from_s); at_s < outer.to_s;
         at_s = step_end(zone, step, at_s)) {
        int64_t border_s = at_s;
        if (!border(c, &bases, now_s, at_s, &border_s)) {
            return false;
        }
        from_s = border_s != at_s ? border_s : from_s;
    }
    *ret = (struct window){from_s, outer.to_s};
    return from_s < outer.to_s;
}

#include "storage/read/window.h"

#include "storage/read/listed_keys.h"
#include "storage/read/plan.h"

static enum storage_err window_plan_all(
    struct proved_read *r, const struct part_set *partitions, struct window window)
{
    size_t buckets = 0;
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        if (!part_set_has(partitions, p)) {
            continue;
        }
        struct cover_basis basis = proved_basis(r, proved_view(r, p));
        enum storage_err err = plan_error(cover_plan(&basis, window, BUCKETS_MAX, &r->covers[p]));
        if (err != STORAGE_OK) {
            return err;
        }
        buckets += r->covers[p].n;
    }
    r->keys_planned = buckets;
    size_t most = r->core->partitions.n * (size_t)READS_A_PARTITION;
    most = r->asked->explain ? COUNTED_KEYS_MAX : most < READS_MAX ? READS_MAX : most;
    return buckets > most ? STORAGE_TOO_BROAD : STORAGE_OK;
}

bool window_widen(
    const struct proved_read *r, const struct part_set *partitions, struct window *window)
{
    struct window before;
    do {
        before = *window;
        for (unsigned p = 0; p < r->core->partitions.n; p++) {
            if (!part_set_has(partitions, p)) {
                continue;
            }
            struct partition_view view = core_view(r->core, p);
            struct cover_basis basis = proved_basis(r, &view);
            if (!cover_outer(&basis, *window, window)) {
                return false;
            }
        }
    } while (before.from_s != window->from_s || before.to_s != window->to_s);
    return true;
}

static enum storage_err window_plan_once(struct proved_read *r, const struct part_set *partitions)
{
    struct window outer = r->window;
    enum storage_err err = window_plan_all(r, partitions, r->window);
    r->asked->answered = r->window;
    if (err != STORAGE_NOT_KEPT) {
        return err;
    }
    if (!window_widen(r, partitions, &outer)) {
        r->asked->answered = (struct window){r->window.from_s, r->window.from_s};
        return err;
    }
    r->asked->answered = outer;
    return r->asked->round_outer ? window_plan_all(r, partitions, outer) : err;
}

enum storage_err window_plan(struct proved_read *r, const struct part_set *partitions)
{
    enum storage_err err = window_plan_once(r, partitions);
    if (err == STORAGE_TOO_BROAD && !plan_lags(r->core)) {
        err = window_plan_once(r, partitions);
    }
    return plan_told(r->core, err);
}

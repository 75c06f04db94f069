#include "storage/read/window.h"

#include <stdlib.h>
#include <string.h>

#include "storage/read/listed_keys.h"
#include "storage/read/plan.h"

/* ---- planning ---- */

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

/* ---- what was read ---- */

/* Has the cover a coarse bucket that is told as minutes (listed_keys.h)?  It lies ahead. */
static bool reaches_ahead(const struct cover *cover, int64_t now_s)
{
    bool found = false;
    for (size_t i = cover->n; !found && i > 0 && cover->buckets[i - 1].end_s > now_s; i--) {
        found = cover->buckets[i - 1].level != LEVEL_MINUTE;
    }
    return found;
}

enum storage_err window_count_keys(struct proved_read *r, unsigned partition, enum key_kind kind,
    const struct slice *const *pages, size_t n_pages, const struct cover *cover)
{
    struct window_question *asked = r->asked;
    struct counted_keys counted = {.per_level = asked->per_level,
        .keys = asked->explain ? &asked->keys : NULL,
        .n = &asked->n_keys,
        .page_bytes = &r->page_bytes,
        .now_s = r->now_s};
    struct counted_bucket what = {.tag = r->core->partitions.tag[partition],
        .kind = kind,
        .site = asked->site,
        .pages = pages,
        .n_pages = n_pages};
    enum storage_err err = STORAGE_OK;
    if (!asked->explain && !reaches_ahead(cover, r->now_s)) {
        for (int level = 0; level < LEVELS; level++) {
            asked->per_level[level] += cover->per_level[level] * (uint32_t)n_pages;
        }
        return STORAGE_OK;
    }
    for (size_t i = 0; err == STORAGE_OK && i < cover->n; i++) {
        what.bucket = cover->buckets[i];
        err = counted_keys_add(&counted, &what);
    }
    return err;
}

void window_clear_keys(struct proved_read *r)
{
    counted_keys_release(&r->asked->keys, &r->asked->n_keys);
    memset(r->asked->per_level, 0, sizeof(r->asked->per_level));
    r->page_bytes = 0;
}

void window_sort_keys(struct window_question *asked)
{
    counted_keys_sort(asked->keys, asked->n_keys);
}

/* share_decide.c - what of a share is counted, and as what.  Nothing here asks Redis, or writes. */
#include <string.h>
#include <xxhash.h>

#include "storage/fold/share.h"
#include "storage/fold/share_state.h"
#include "storage/job/counted_name.h"

/* Does a stripe that has come to @at have event @i (from 0) of entry @n? */
static bool has_event(struct log_position at, uint64_t n, uint64_t i)
{
    return n <= at.whole || (n == at.whole + 1 && i < at.events);
}

/* Merge what the row says of its user: days, and that the user saw the page. */
static bool add_user(struct share *s, const struct row *row, const struct write_plan *plan)
{
    int64_t arrival_s = s->batch->entries[row->entry].arrival_s;
    /* `over` tells how late it was when a pair was counted, so no pair belongs to a later month. */
    int64_t pair_s = arrival_s < s->now_ms / 1000 ? arrival_s : s->now_ms / 1000;
    if (s->day_minute_s != plan->minute_s || s->day_zone != plan->zone) {
        s->day_zone = plan->zone;
        s->day_minute_s = plan->minute_s;
        s->day = activity_day_make(plan->zone, plan->retention, plan->minute_s);
    }
    struct known_user of_visit;
    const struct known_user *known = merge_visits_user(s->visits, &row->user_id, &of_visit)
                                         ? &of_visit
                                         : share_known_user(s, row);
    return (!s->asks_first || merge_first_add(s->first, row, &s->day, s->now_ms)) &&
           merge_activity_add(s->activity, row, &s->day, known) &&
           (!row->is_view || !s->core->config.seen.on || merge_seen_add(s->seen, row, pair_s));
}

/* The buckets of @plan are written to. */
static void note_written(struct share *s, const struct write_plan *plan)
{
    s->late = s->late || plan->n > 1;
    s->oldest_s = plan->minute_s < s->oldest_s ? plan->minute_s : s->oldest_s;
}

/* What an open visit gains counts in the buckets of the event, not in those of its beginning: else
 * buckets that are over would change with each fold, and nothing of them could be remembered
 * (storage/schema/README.md). */
static bool add_gain(struct share *s, const struct row *row, const struct visit_step *step,
    const struct write_plan *plan)
{
    struct merge_sum engaged = {NAME_VISITS_ENGAGED, step->engages};
    struct merge_sum seconds = {NAME_VISITS_SECONDS, step->seconds};
    if (engaged.amount + seconds.amount > 0) {
        note_written(s, plan);
    }
    return (engaged.amount == 0 ||
               merge_counts_add_sum(s->counts, row, &engaged, plan->targets, plan->n)) &&
           (seconds.amount == 0 ||
               merge_counts_add_sum(s->counts, row, &seconds, plan->targets, plan->n));
}

static bool add_visit(struct share *s, const struct row *row, const struct write_plan *plan)
{
    int64_t arrival_s = s->batch->entries[row->entry].arrival_s;
    struct counted_for names[PLACE_NAMES_MAX];
    struct visit_step step = merge_visits_add(s->visits, row, arrival_s);
    if (!step.begins) {
        return add_gain(s, row, &step, plan);
    }
    size_t n = place_names_of_visit(&s->names, row, !share_drops_page(s, row), names);
    return merge_counts_add(s->counts, KEY_VV, row, names, n, plan->targets, plan->n);
}

static bool merge_task(
    struct share *s, const struct row *row, enum task_kind kind, struct write_plan *plan)
{
    s->n_events += kind == TASK_SITE;
    if (share_drops(s, row)) {
        return true;
    }
    s->n_rows++;
    if (kind == TASK_SITE && row->site != s->last_site) {
        s->last_site = row->site;
        share_announce(s, &s->sites, row->site->name);
    }
    if (kind == TASK_SITE && !row->is_view) {
        return true; /* it is announced that the site has data */
    }
    if (kind == TASK_PAGE && share_drops_page(s, row)) {
        return true;
    }
    write_plan_in(plan, row->site->zone);
    write_plan_at(plan, row->at_s);
    if (row->is_view || kind == TASK_PAGE) { /* buckets are written to */
        note_written(s, plan);
    }
    if (kind == TASK_PAGE || kind == TASK_SITE) {
        struct counted_for names[PLACE_NAMES_MAX];
        size_t n = kind == TASK_PAGE ? place_names_of_page(&s->names, row, names)
                                     : place_names_of_site(&s->names, row, names);
        return merge_counts_add(s->counts, KEY_PV, row, names, n, plan->targets, plan->n);
    }
    return (kind != TASK_VISIT || add_visit(s, row, plan)) &&
           (!task_has_user(row, kind) || add_user(s, row, plan));
}

/* Merge the tasks of the cut that no cursor says are counted.  False: out of memory. */
static bool merge_tasks(struct share *s, const enum log_fate fates[BATCH_LOGS])
{
    struct write_plan plan;
    write_plan_init(&plan, &s->view.retention, &s->view.state);
    s->late = false;
    s->oldest_s = OLDEST_NONE;
    s->n_rows = s->n_events = 0;
    s->day_minute_s = INT64_MIN;
    s->last_site = NULL;
    place_names_decide(&s->names);
    for (uint32_t i = s->cut.from; i < s->cut.to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        const struct batch_entry *entry = &s->batch->entries[row->entry];
        uint32_t event = (uint32_t)(row - s->batch->rows) - entry->first_row;
        if (fates[entry->log] == LOG_COUNTS &&
            !has_event(s->cursors[entry->log].at[row_stripe(row, kind)], entry->entry->n, event) &&
            !merge_task(s, row, kind, &plan)) {
            return false;
        }
    }
    return true;
}

/* Move log @l's position in @stripe on to @to.  False: entries are missing. */
static bool move_position(struct share *s, uint32_t l, unsigned stripe, struct log_position to)
{
    struct log_position from = s->cursors[l].at[stripe];
    if (!log_position_before(from, to)) {
        return true;
    }
    s->targets[l].at[stripe] = to;
    s->moves[l] = true;
    return from.whole >= s->batch->logs[l].from;
}

static bool move_cursor(struct share *s, uint32_t l)
{
    struct log_position end = batch_position(s->batch, l, (uint32_t)s->batch->n_rows);
    bool ok = true;
    s->targets[l] = s->cursors[l];
    for (unsigned c = s->cut.first_stripe; c < s->cut.end_stripe; c++) {
        ok = move_position(s, l, c, end) && ok;
    }
    return ok && (s->cut.to_row == 0 || move_position(s, l, s->cut.end_stripe,
                                            batch_position(s->batch, l, s->cut.to_row)));
}

/* Decide where the cursors move.  False: entries of log *ret_log are missing. */
static bool move_cursors(struct share *s, const enum log_fate fates[BATCH_LOGS], uint32_t *ret_log)
{
    for (uint32_t l = 0; l < s->batch->n_logs; l++) {
        s->moves[l] = false;
        if (fates[l] == LOG_COUNTS && !move_cursor(s, l)) {
            *ret_log = l;
            return false;
        }
    }
    return true;
}

/* Tell the core what was read of the partition, if the rollup went on since the last look. */
static void show_view(struct share *s)
{
    char is[ROLLUP_STATE_TEXT];
    char was[ROLLUP_STATE_TEXT];
    struct partition_view known = core_view(s->core, s->cut.partition);
    rollup_state_print(&s->view.state, is);
    rollup_state_print(&known.state, was);
    if (!known.known || strcmp(is, was) != 0) {
        core_set_view(s->core, s->cut.partition, &s->view);
    }
}

static void drop_visitor(void *data, const struct visitor_id *id)
{
    known_visitors_drop(&((struct share *)data)->memory->shared->visitors, id);
}

/* Did the answers have all users whose visits were expected? */
static bool has_expected(struct share *s)
{
    struct slice users = s->read[FIELD_USERS];
    merge_visits_generation(s->visits, XXH3_64bits(users.p, users.n));
    return merge_visits_missing(s->visits, drop_visitor, s) == 0;
}

/* Are those hours closed that were taken for closed when the names were asked for?  Else the share
 * begins again with the state that was read. */
static bool hours_are_known(struct share *s)
{
    const struct places_view view = {
        .known = true, .state = s->view.state, .retention = s->view.retention, .now_ms = s->now_ms};
    bool same = places_hours_are(s->names.places, &view);
    if (!same) {
        s->hours_as_read = view;
        s->hours_partition = s->cut.partition;
    }
    return same;
}

enum share_look share_decide(
    struct share *s, const enum log_fate fates[BATCH_LOGS], int64_t now_ms, uint32_t *ret_log)
{
    bool any = false;
    if (!s->is_ours) {
        return SHARE_CONFIG;
    }
    if (!s->view.known) {
        return SHARE_EMPTIED;
    }
    bool relies = s->relies_on_users || places_rely_on_known(s->names.places);
    if (!has_expected(s) || (relies && !s->generation_held)) {
        return SHARE_AGAIN;
    }
    s->now_ms = now_ms;
    show_view(s);
    if (!hours_are_known(s)) {
        return SHARE_AGAIN;
    }
    if (!move_cursors(s, fates, ret_log)) {
        return SHARE_STALE;
    }
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        any = any || s->moves[l];
    }
    if (!merge_tasks(s, fates)) {
        return SHARE_NOMEM;
    }
    return any ? SHARE_FOLDS : SHARE_NOTHING;
}

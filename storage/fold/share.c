#include "storage/fold/share.h"

#include <stdlib.h>
#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/merge/merge_activity.h"
#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_first.h"
#include "storage/merge/merge_seen.h"
#include "storage/merge/merge_visits.h"
#include "storage/fold/share_state.h"
#include "storage/job/counted_name.h"
#include "storage/redis/resp.h"

struct share *share_new(struct core *core, struct fold_memory *memory)
{
    struct share *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->core = core;
    s->memory = memory;
    s->counts = merge_counts_new(KEY_PV);
    s->starts = merge_counts_new(KEY_VV);
    s->visits = merge_visits_new(core->config.visit_timeout_s);
    s->activity = merge_activity_new();
    s->seen = merge_seen_new();
    s->first = merge_first_new();
    if (s->counts == NULL || s->starts == NULL || s->visits == NULL || s->activity == NULL ||
        s->seen == NULL || s->first == NULL || !place_names_init(&s->names, core)) {
        share_free(s);
        return NULL;
    }
    return s;
}

void share_free(struct share *s)
{
    if (s != NULL) {
        merge_counts_free(s->counts);
        merge_counts_free(s->starts);
        merge_visits_free(s->visits);
        merge_activity_free(s->activity);
        merge_seen_free(s->seen);
        place_names_release(&s->names);
        merge_first_free(s->first);
        free(s->open.texts);
        free(s->sites.texts);
        arena_release(&s->arena);
        free(s);
    }
}

/* ---- questions ---- */

static const struct known_user *find_known(const struct share *s, const struct row *row)
{
    return known_users_find(&s->memory->users, s->cut.partition, &row->user_id);
}

/* Does the task deal with the row's user? */
static bool has_user(const struct row *row, enum task_kind kind)
{
    return kind == TASK_USER || (kind == TASK_VISIT && row->user_is_visitor);
}

/* Ask for the names that the task counts. */
static bool ask_names(struct share *s, const struct row *row, enum task_kind kind)
{
    return kind == TASK_PAGE    ? place_names_ask_page(&s->names, row)
           : kind == TASK_SITE  ? place_names_ask_site(&s->names, row)
           : kind == TASK_VISIT ? place_names_ask_visit(&s->names, row)
                                : true;
}

/* Where is the visit to be expected, with the user's index?  Whoever asks which actions were first
 * needs the index for further questions: that user is asked for by name. */
static enum known_visit expected_visit(
    const struct share *s, const struct row *row, int64_t arrival_s)
{
    return row->user_is_visitor && row->ticket == NULL
               ? known_visitors_find(
                     s->memory->visitors, &row->visitor, merge_visits_slot(s->visits, arrival_s))
               : VISIT_ANYWHERE;
}

/* Ask for the names, the visitor and the user of a task. */
static bool ask(struct share *s, const struct row *row, enum task_kind kind)
{
    int64_t arrival_s = s->batch->entries[row->entry].arrival_s;
    enum known_visit expected =
        kind == TASK_VISIT ? expected_visit(s, row, arrival_s) : VISIT_ANYWHERE;
    if (!ask_names(s, row, kind) ||
        (kind == TASK_VISIT && !merge_visits_ask(s->visits, row, arrival_s, expected))) {
        return false;
    }
    if (!has_user(row, kind) || expected != VISIT_ANYWHERE) {
        return true;
    }
    const struct known_user *known = find_known(s, row);
    s->relies_on_users = s->relies_on_users || known != NULL;
    s->asks_first = s->asks_first || row->ticket != NULL;
    return merge_activity_ask(s->activity, row, known);
}

static int compare_tasks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The tasks of the cut by row again: names get their places in the order of arrival. */
static bool sort_tasks(struct share *s)
{
    const struct cut *cut = &s->cut;
    size_t n = cut->to - cut->from;
    s->tasks = arena_alloc(&s->arena, (n + 1) * sizeof(*s->tasks));
    if (s->tasks == NULL) {
        return false;
    }
    if (n > 0) {
        memcpy(s->tasks, s->batch->tasks[cut->partition].tasks + cut->from, n * sizeof(*s->tasks));
        qsort(s->tasks, n, sizeof(*s->tasks), compare_tasks);
    }
    return true;
}

bool share_begin(struct share *s, const struct batch *batch, const struct cut *cut)
{
    s->batch = batch;
    s->cut = *cut;
    s->tag = s->core->partitions.tag[cut->partition];
    s->relies_on_users = s->asks_first = s->failed = false;
    merge_counts_clear(s->counts);
    merge_counts_clear(s->starts);
    merge_visits_clear(s->visits);
    merge_activity_clear(s->activity);
    merge_seen_clear(s->seen);
    merge_first_clear(s->first);
    s->open.n = s->sites.n = 0;
    arena_clear(&s->arena);
    s->cursors = arena_alloc(&s->arena, batch->n_logs * sizeof(*s->cursors));
    s->targets = arena_alloc(&s->arena, batch->n_logs * sizeof(*s->targets));
    if (!sort_tasks(s) || s->cursors == NULL || s->targets == NULL ||
        !place_names_begin(
            &s->names, batch->values, batch->n_values, cut->partition, &s->memory->places)) {
        return false;
    }
    for (uint32_t i = cut->from; i < cut->to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        if (!ask(s, row, kind)) {
            return false;
        }
    }
    return true;
}

size_t share_write_questions(struct share *s, struct buffer *out)
{
    partition_state_ask(out, s->tag, LOG_FIELDS - STATE_FIELDS + s->batch->n_logs);
    resp_text(out, "users");
    resp_text(out, "deleted");
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        resp_text(out, s->batch->logs[l].id);
    }
    s->n_visit_questions = merge_visits_write_questions(s->visits, s->tag, out);
    s->n_place_questions = places_write_questions(s->names.places, s->tag, out);
    return 1 + s->n_visit_questions + s->n_place_questions +
           merge_activity_write_questions(s->activity, s->tag, out);
}

/* What is known of users holds for one generation of them. */
static void take_generation(struct share *s, const struct reply *users)
{
    unsigned p = s->cut.partition;
    struct slice generation = users->type == REPLY_TEXT ? users->text : SLICE("-");
    struct slice known = slice_of(known_users_relied_on(&s->memory->users, p));
    bool knows = known.n > 0; /* else nothing is known of the partition */
    s->generation_held = slice_equal(generation, known);
    known_users_generation(&s->memory->users, p, generation);
    if (knows && !s->generation_held) { /* pages may have been deleted */
        known_hashes_forget(&s->memory->expiries);
        known_hashes_forget(&s->memory->places);
        known_sketches_forget(&s->memory->sketches);
    }
}

/* Which sites were deleted.  Keys of theirs are gone that the memory says are there. */
static void take_deleted(struct share *s, struct slice is)
{
    s->deleted = tombstones_of((struct slice){is.p + 1, is.n - 1});
    uint64_t hash = share_deleted_hash(is);
    uint64_t *known = &s->memory->deleted[s->cut.partition];
    s->deleted_held = *known == hash;
    if (!s->deleted_held) {
        announced_forget(&s->memory->announced);
        known_hashes_forget(&s->memory->expiries);
        known_hashes_forget(&s->memory->places);
        *known = hash;
    }
}

/* Keep the value of a field: fold.lua compares it. */
static bool keep_read(struct share *s, size_t field, const struct reply *value)
{
    bool is = value->type == REPLY_TEXT;
    size_t n = is ? value->text.n + 1 : 1;
    char *copy = arena_alloc(&s->arena, n);
    if (copy == NULL) {
        return false;
    }
    copy[0] = is ? '=' : '-';
    if (is) {
        memcpy(copy + 1, value->text.p, value->text.n);
    }
    s->read[field] = (struct slice){copy, n};
    return true;
}

static bool take_state(struct share *s, const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY || reply->n != LOG_FIELDS + s->batch->n_logs) {
        return false;
    }
    struct reply fields = *reply;
    fields.n = STATE_FIELDS;
    for (size_t i = 0; i < reply->n; i++) {
        if (!keep_read(s, i, &reply->items[i])) {
            return false;
        }
    }
    s->has_state = reply->items[0].type == REPLY_TEXT;
    s->is_ours = core_parse_state(s->core, &fields, &s->view);
    take_generation(s, &reply->items[STATE_FIELDS]);
    take_deleted(s, s->read[STATE_FIELDS + 1]);
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        if (!log_cursor_parse(&reply->items[LOG_FIELDS + l], &s->cursors[l])) {
            return false;
        }
    }
    return true;
}

bool share_take(struct share *s, size_t i, const struct reply *reply)
{
    if (i == 0) {
        return take_state(s, reply);
    }
    if (i <= s->n_visit_questions) {
        return merge_visits_take(s->visits, i - 1, reply);
    }
    i -= 1 + s->n_visit_questions;
    return i < s->n_place_questions ? places_take(s->names.places, i, reply)
                                    : merge_activity_take(s->activity, reply);
}

/* ---- further questions ---- */

bool share_asks_more(const struct share *s)
{
    return s->asks_first;
}

static bool ask_first(struct share *s, const struct row *row)
{
    const struct known_user *known = find_known(s, row);
    uint32_t index = known != NULL ? known->index : merge_activity_index(s->activity, row);
    int64_t day = activity_day_make(row->zone, &s->view.retention, row->at_s).day;
    return merge_first_ask(s->first, row, day, index);
}

size_t share_write_more(struct share *s, struct buffer *out)
{
    bool ok = true;
    for (uint32_t i = s->cut.from; s->asks_first && ok && i < s->cut.to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        ok = !has_user(row, kind) || row->ticket == NULL || ask_first(s, row);
    }
    out->failed = out->failed || !ok;
    return merge_first_write_questions(s->first, s->tag, out);
}

bool share_take_more(struct share *s, size_t i, const struct reply *reply)
{
    return merge_first_take(s->first, i, reply);
}

/* ---- deciding ---- */

/* Is event @i (from 0) of entry @n counted? */
static bool has_event(struct log_position at, uint64_t n, uint64_t i)
{
    return n <= at.whole || (n == at.whole + 1 && i < at.events);
}

/* What the row says of its user: days, and that the user saw the page. */
static bool add_user(struct share *s, const struct row *row, const struct write_plan *plan)
{
    int64_t arrival_s = s->batch->entries[row->entry].arrival_s;
    if (s->day_minute_s != plan->minute_s || s->day_zone != plan->zone) {
        s->day_zone = plan->zone;
        s->day_minute_s = plan->minute_s;
        s->day = activity_day_make(plan->zone, plan->retention, plan->minute_s);
    }
    struct known_user of_visit;
    const struct known_user *known =
        merge_visits_user(s->visits, &row->user_id, &of_visit) ? &of_visit : find_known(s, row);
    return (!s->asks_first || merge_first_add(s->first, row, &s->day, s->now_ms)) &&
           merge_activity_add(s->activity, row, &s->day, known) &&
           (!row->is_view || !s->core->config.seen.on || merge_seen_add(s->seen, row, arrival_s));
}

/* The buckets of @plan are written to. */
static void note_written(struct share *s, const struct write_plan *plan)
{
    s->late = s->late || plan->n > 1;
    s->oldest_s = plan->minute_s < s->oldest_s ? plan->minute_s : s->oldest_s;
}

/* What an open visit gains counts where it gains it, and not where it began: buckets that are over
 * would change with each fold, and nothing of them could be remembered (storage/schema/README.md).
 */
static bool add_gain(struct share *s, const struct row *row, const struct visit_step *step,
    const struct write_plan *plan)
{
    struct merge_sum engaged = {NAME_VISITS_ENGAGED, step->engages};
    struct merge_sum seconds = {NAME_VISITS_SECONDS, step->seconds};
    if (engaged.amount + seconds.amount > 0) {
        note_written(s, plan);
    }
    return (engaged.amount == 0 ||
               merge_counts_add_sum(s->starts, row, &engaged, plan->targets, plan->n)) &&
           (seconds.amount == 0 ||
               merge_counts_add_sum(s->starts, row, &seconds, plan->targets, plan->n));
}

static bool add_visit(struct share *s, const struct row *row, const struct write_plan *plan)
{
    int64_t arrival_s = s->batch->entries[row->entry].arrival_s;
    struct counted_for names[PLACE_NAMES_MAX];
    struct visit_step step = merge_visits_add(s->visits, row, arrival_s);
    if (!step.begins) {
        return add_gain(s, row, &step, plan);
    }
    size_t n = place_names_of_visit(&s->names, row, names);
    return merge_counts_add(s->starts, row, names, n, plan->targets, plan->n);
}

static bool merge_task(
    struct share *s, const struct row *row, enum task_kind kind, struct write_plan *plan)
{
    s->n_events += kind == TASK_SITE;
    if (share_drops(s, row)) {
        return true;
    }
    s->n_rows++;
    if (kind == TASK_SITE && !row->is_view) {
        return true; /* the site has data: see announce_sites() */
    }
    write_plan_in(plan, row->zone);
    write_plan_at(plan, row->at_s);
    if (row->is_view || kind == TASK_PAGE) { /* buckets are written to */
        note_written(s, plan);
    }
    if (kind == TASK_PAGE || kind == TASK_SITE) {
        struct counted_for names[PLACE_NAMES_MAX];
        size_t n = kind == TASK_PAGE ? place_names_of_page(&s->names, row, names)
                                     : place_names_of_site(&s->names, row, names);
        return merge_counts_add(s->counts, row, names, n, plan->targets, plan->n);
    }
    return (kind != TASK_VISIT || add_visit(s, row, plan)) &&
           (!has_user(row, kind) || add_user(s, row, plan));
}

/* Merge what is not counted yet. */
static bool merge_tasks(struct share *s, const enum log_fate fates[BATCH_LOGS])
{
    struct write_plan plan;
    write_plan_init(&plan, zone_utc(), &s->view.retention, &s->view.state);
    s->late = false;
    s->oldest_s = OLDEST_NONE;
    s->n_rows = s->n_events = 0;
    s->day_minute_s = INT64_MIN;
    place_names_decide(&s->names);
    for (uint32_t i = s->cut.from; i < s->cut.to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        const struct batch_entry *entry = &s->batch->entries[row->entry];
        uint32_t event = (uint32_t)(row - s->batch->rows) - entry->first_row;
        if (fates[entry->log] == LOG_COUNTS &&
            !has_event(
                s->cursors[entry->log].at[batch_stripe(row, kind)], entry->entry->n, event) &&
            !merge_task(s, row, kind, &plan)) {
            return false;
        }
    }
    return true;
}

/* Move log @l's position in @stripe on to @to.  False: entries are missing. */
static bool move_position(struct share *s, uint32_t l, unsigned stripe, struct log_position to)
{
    struct log_position is = s->cursors[l].at[stripe];
    if (!log_position_before(is, to)) {
        return true;
    }
    s->targets[l].at[stripe] = to;
    s->moves[l] = true;
    return is.whole >= s->batch->logs[l].from;
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

/* Where the cursors go.  False: entries are missing of log *ret_log. */
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

/* The rollup went on since the last look. */
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
    known_visitors_drop(((struct share *)data)->memory->visitors, id);
}

/* Were all users found who were expected? */
static bool has_expected(struct share *s)
{
    struct slice users = s->read[STATE_FIELDS];
    merge_visits_generation(s->visits, XXH3_64bits(users.p, users.n));
    return merge_visits_missing(s->visits, drop_visitor, s) == 0;
}

enum share_look share_decide(
    struct share *s, const enum log_fate fates[BATCH_LOGS], int64_t now_ms, uint32_t *ret_log)
{
    bool any = false;
    if (!s->has_state) {
        return SHARE_EMPTIED;
    }
    if (!s->is_ours) {
        return SHARE_CONFIG;
    }
    if (!has_expected(s) || (s->relies_on_users && !s->generation_held) ||
        (places_rely_on_known(s->names.places) && !s->deleted_held)) {
        return SHARE_AGAIN;
    }
    s->now_ms = now_ms;
    show_view(s);
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

/* ---- commands ---- */

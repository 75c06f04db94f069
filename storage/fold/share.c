#include "storage/fold/share.h"

#include <stdlib.h>

#include "storage/fold/share_state.h"
#include "storage/redis/resp.h"

/* Where a cap may be reached, so many shares of the partition read the counters of closed hours
 * first, and none of these is decided twice. */
#define NEAR_CAPS_SHARES 4

/* Redis's clock may be set back by so much: then a visitor's last event may lie in a slot that has
 * not begun.  To ask for the next slot, too, costs as much as to ask for the one at hand. */
#define SET_BACK_S 60

struct share *share_new(struct core *core, struct fold_memory *memory)
{
    struct share *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->core = core;
    s->memory = memory;
    s->counts = merge_counts_new(&core->config, core->partitions.n);
    s->visits = merge_visits_new(core->config.visit_timeout_s);
    s->activity = merge_activity_new();
    s->seen = merge_seen_new();
    s->first = merge_first_new();
    if (s->counts == NULL || s->visits == NULL || s->activity == NULL || s->seen == NULL ||
        s->first == NULL || !place_names_init(&s->names, core)) {
        share_free(s);
        return NULL;
    }
    return s;
}

void share_free(struct share *s)
{
    if (s != NULL) {
        merge_counts_free(s->counts);
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

/* Ask for the names that the task counts. */
static bool ask_names(struct share *s, const struct row *row, enum task_kind kind)
{
    return kind == TASK_PAGE    ? place_names_ask_page(&s->names, row)
           : kind == TASK_SITE  ? place_names_ask_site(&s->names, row)
           : kind == TASK_VISIT ? place_names_ask_visit(&s->names, row)
                                : true;
}

/* In which slot is the row's visit expected, with the user's index?  A row that asks which actions
 * were first needs the index for further questions, so its user is asked for by name. */
static enum known_visit expected_visit(
    const struct share *s, const struct row *row, int64_t arrival_s)
{
    return row->user_is_visitor && row->ticket == NULL
               ? known_visitors_find(&s->memory->shared->visitors, &row->visitor,
                     merge_visits_slot(s->visits, arrival_s))
               : VISIT_ANYWHERE;
}

/* Ask for the names, the visitor and the user of a task. */
static bool share_ask(struct share *s, const struct row *row, enum task_kind kind)
{
    int64_t arrival_s = s->batch->entries[row->entry].arrival_s;
    s->asks_last = s->asks_last || row->at_s < s->recent_s;
    enum known_visit expected =
        kind == TASK_VISIT ? expected_visit(s, row, arrival_s) : VISIT_ANYWHERE;
    if (!ask_names(s, row, kind) ||
        (kind == TASK_VISIT && !merge_visits_ask(s->visits, row, arrival_s, expected))) {
        return false;
    }
    if (!task_has_user(row, kind) || expected != VISIT_ANYWHERE) {
        return true;
    }
    const struct known_user *known = share_known_user(s, row);
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

/* Sort the tasks of the cut by row again: names get their places in the order of arrival. */
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

/* The state of the partition as far as is known, to tell which hours are closed.  The look before
 * may have read the state; else this is what the process has last seen. */
static struct places_view take_known_hours(struct share *s)
{
    struct partition_view view = core_view(s->core, s->cut.partition);
    struct places_view known = {.known = view.known,
        .state = view.state,
        .retention = view.retention,
        .now_ms = redis_clock_ms(&s->core->clock)};
    if (s->hours_as_read.known && s->hours_partition == s->cut.partition) {
        known = s->hours_as_read;
    }
    s->hours_as_read.known = false;
    uint8_t *near_caps = &s->memory->near_caps[s->cut.partition];
    s->near_caps = *near_caps > 0;
    *near_caps -= s->near_caps;
    known.reads_counters = s->near_caps;
    return known;
}

bool share_begin(struct share *s, const struct batch *batch, const struct cut *cut)
{
    s->batch = batch;
    s->cut = *cut;
    s->tag = s->core->partitions.tag[cut->partition];
    s->relies_on_users = s->asks_first = s->asks_last = s->failed = false;
    s->recent_s = redis_clock_ms(&s->core->clock) / 1000 - KNOWN_RECENT_S;
    merge_counts_begin(s->counts, batch->rows);
    merge_visits_clear(s->visits);
    merge_visits_now(s->visits, s->recent_s + KNOWN_RECENT_S + SET_BACK_S);
    merge_activity_clear(s->activity);
    merge_seen_clear(s->seen);
    merge_first_clear(s->first);
    s->open.n = s->sites.n = 0;
    arena_clear(&s->arena);
    s->cursors = arena_alloc(&s->arena, batch->n_logs * sizeof(*s->cursors));
    s->targets = arena_alloc(&s->arena, batch->n_logs * sizeof(*s->targets));
    const struct places_view view = take_known_hours(s);
    if (!sort_tasks(s) || s->cursors == NULL || s->targets == NULL ||
        !place_names_begin(
            &s->names, batch->values, batch->n_values, cut->partition, &s->memory->hashes, &view)) {
        return false;
    }
    for (uint32_t i = cut->from; i < cut->to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        if (!share_ask(s, row, kind)) {
            return false;
        }
    }
    s->asks_last = s->asks_last || places_rest_on_counters(s->names.places);
    return true;
}

static size_t write_questions(struct share *s, struct buffer *out)
{
    partition_state_ask(out, s->tag, FIELD_CURSORS - STATE_FIELDS + s->batch->n_logs);
    resp_text(out, "users");
    resp_text(out, "deleted");
    resp_text(out, "deleting");
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        resp_text(out, s->batch->logs[l].id);
    }
    s->n_visit_questions = merge_visits_write_questions(s->visits, s->tag, out);
    s->n_place_questions = places_write_questions(s->names.places, s->tag, out);
    return 1 + s->n_visit_questions + s->n_place_questions +
           merge_activity_write_questions(s->activity, s->tag, out);
}

/* The memory holds for one generation of the partition's users.  To delete a site or pages begins
 * another generation, too: then keys are gone that the memory says are there. */
static void take_generation(struct share *s, const struct reply *users)
{
    unsigned p = s->cut.partition;
    struct slice generation = users->type == REPLY_TEXT ? users->text : SLICE("-");
    struct slice known = slice_of(known_users_relied_on(&s->memory->users, p));
    bool knows = known.n > 0; /* else the memory has nothing of the partition */
    s->generation_held = slice_equal(generation, known);
    known_users_generation(&s->memory->users, p, generation);
    if (knows && !s->generation_held) {
        fold_memory_forget_keys(s->memory);
    }
}

/* Keep the value of a field, which fold.lua compares.  False: out of memory. */
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
    if (reply->type != REPLY_ARRAY || reply->n != FIELD_CURSORS + s->batch->n_logs) {
        return false;
    }
    struct reply fields = *reply;
    fields.n = STATE_FIELDS;
    for (size_t i = 0; i < reply->n; i++) {
        if (!keep_read(s, i, &reply->items[i])) {
            return false;
        }
    }
    s->is_ours = core_parse_state(s->core, &fields, &s->view);
    take_generation(s, &reply->items[FIELD_USERS]);
    struct slice deleted = s->read[FIELD_DELETED];
    s->deleted = tombstones_of((struct slice){deleted.p + 1, deleted.n - 1});
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        if (!log_cursor_parse(&reply->items[FIELD_CURSORS + l], &s->cursors[l])) {
            return false;
        }
    }
    return true;
}

static bool take_first(struct share *s, size_t i, const struct reply *reply)
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
    return s->asks_first || s->near_caps;
}

static bool ask_first(struct share *s, const struct row *row)
{
    const struct known_user *known = share_known_user(s, row);
    uint32_t index = known != NULL ? known->index : merge_activity_index(s->activity, row);
    int64_t day = activity_day_make(row->site->zone, &s->view.retention, row->at_s).day;
    return merge_first_ask(s->first, row, day, index);
}

static size_t write_more(struct share *s, struct buffer *out)
{
    bool ok = true;
    for (uint32_t i = s->cut.from; s->asks_first && ok && i < s->cut.to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        ok = !task_has_user(row, kind) || row->ticket == NULL || ask_first(s, row);
    }
    out->failed = out->failed || !ok;
    s->n_place_questions = s->near_caps ? places_write_more(s->names.places, s->tag, out) : 0;
    return s->n_place_questions + merge_first_write_questions(s->first, s->tag, out);
}

bool share_asks_last(const struct share *s)
{
    return s->asks_last;
}

size_t share_write(struct share *s, enum share_step step, struct buffer *out)
{
    if (step == SHARE_STATE) {
        return write_questions(s, out);
    }
    if (step == SHARE_MORE) {
        return write_more(s, out);
    }
    if (!s->asks_last || share_is_swept(s)) {
        return 0;
    }
    return step == SHARE_LAST
               ? merge_counts_write_questions(s->counts, s->tag, s->now_ms, &s->view.state, out)
               : merge_counts_write_rest(
                     s->counts, step == SHARE_HOURS ? LEVEL_HOUR : LEVEL_MINUTE, s->tag, out);
}

bool share_take(struct share *s, enum share_step step, size_t i, const struct reply *reply)
{
    if (step == SHARE_STATE) {
        return take_first(s, i, reply);
    }
    if (step == SHARE_MORE) {
        return i < s->n_place_questions
                   ? places_take_more(s->names.places, i, reply)
                   : merge_first_take(s->first, i - s->n_place_questions, reply);
    }
    return merge_counts_take(s->counts, reply);
}

bool share_fits(struct share *s)
{
    bool fits = !places_rest_on_counters(s->names.places) ||
                (!share_is_swept(s) && !merge_counts_exceeds(s->counts));
    if (!fits) {
        s->memory->near_caps[s->cut.partition] = NEAR_CAPS_SHARES;
    }
    return fits;
}

#include "storage/fold/share.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/fold/merge_activity.h"
#include "storage/fold/merge_counts.h"
#include "storage/fold/merge_seen.h"
#include "storage/fold/merge_visits.h"
#include "storage/redis/resp.h"

#define MINUTE_S    60
#define MEMBERS_MAX 1000 /* in one SADD */
#define OLDEST_NONE INT64_MAX
#define LOG_FIELDS  (STATE_FIELDS + 1) /* the first cursor, behind `users` */

/* Members for one of the sets `open` and `sites`, not known to be in it. */
struct members {
    struct slice *texts; /* owned array; the bytes are the arena's */
    size_t n, capacity;
};

struct share {
    struct core *core;
    struct fold_memory *memory;
    struct merge_counts *counts, *starts;
    struct merge_visits *visits;
    struct merge_activity *activity;
    struct merge_seen *seen;

    const struct batch *batch;
    struct cut cut;
    const char *tag;
    size_t n_visit_questions;

    /* What was read. */
    struct slice read[LOG_FIELDS + BATCH_LOGS]; /* as fold.lua expects it, in the arena */
    bool has_state, is_ours;
    bool relies_on_users; /* what is known of users was used */
    struct partition_view view;
    struct log_cursor cursors[BATCH_LOGS];
    bool generation_held; /* the users are those of before */

    /* What was decided. */
    int64_t now_ms;
    struct log_cursor targets[BATCH_LOGS];
    bool moves[BATCH_LOGS]; /* the cursor */
    bool late;              /* a bucket closed for writers is written to */
    int64_t oldest_s;       /* the oldest minute that is written to */
    size_t n_rows, n_events;
    struct activity_day day; /* of day_minute_s in day_zone */
    int64_t day_minute_s;
    const struct zone *day_zone;
    struct members open, sites;
    struct arena arena;
    bool failed;       /* memory was short */
    size_t seen_reply; /* the first answer that belongs to `seen` */
};

void fold_memory_forget(struct fold_memory *memory)
{
    announced_forget(&memory->announced);
    known_users_forget_all(&memory->users);
}

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
    if (s->counts == NULL || s->starts == NULL || s->visits == NULL || s->activity == NULL ||
        s->seen == NULL) {
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
        free(s->open.texts);
        free(s->sites.texts);
        arena_release(&s->arena);
        free(s);
    }
}

/* ---- questions ---- */

static const struct row *task_row(const struct share *s, uint32_t task, enum task_kind *ret_kind)
{
    uint32_t is = s->batch->tasks[s->cut.partition].tasks[task];
    *ret_kind = (enum task_kind)(is & 3);
    return &s->batch->rows[is >> 2];
}

static const struct known_user *find_known(const struct share *s, const struct row *row)
{
    return known_users_find(&s->memory->users, s->cut.partition, &row->visitor);
}

/* Ask for the visitor, and the user, of a task. */
static bool ask(struct share *s, const struct row *row)
{
    int64_t arrival_s = s->batch->entries[row->unit].arrival_s;
    if (!merge_visits_ask(s->visits, row, arrival_s)) {
        return false;
    }
    if (row->user.n == 0) {
        return true;
    }
    const struct known_user *known = find_known(s, row);
    s->relies_on_users = s->relies_on_users || known != NULL;
    return merge_activity_ask(s->activity, row, known);
}

bool share_begin(struct share *s, const struct batch *batch, const struct cut *cut)
{
    s->batch = batch;
    s->cut = *cut;
    s->tag = s->core->partitions.tag[cut->partition];
    s->relies_on_users = s->failed = false;
    merge_counts_clear(s->counts);
    merge_counts_clear(s->starts);
    merge_visits_clear(s->visits);
    merge_activity_clear(s->activity);
    merge_seen_clear(s->seen);
    s->open.n = s->sites.n = 0;
    arena_clear(&s->arena);
    for (uint32_t i = cut->from; i < cut->to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        if (kind == TASK_VISIT && !ask(s, row)) {
            return false;
        }
    }
    return true;
}

size_t share_write_questions(struct share *s, struct buffer *out)
{
    partition_state_ask(out, s->tag, 1 + s->batch->n_logs);
    resp_text(out, "users");
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        resp_text(out, s->batch->logs[l].id);
    }
    s->n_visit_questions = merge_visits_write_questions(s->visits, s->tag, out);
    return 1 + s->n_visit_questions + merge_activity_write_questions(s->activity, s->tag, out);
}

/* What is known of users holds for one generation of them. */
static void take_generation(struct share *s, const struct reply *users)
{
    unsigned p = s->cut.partition;
    struct slice generation = users->type == REPLY_TEXT ? users->text : SLICE("-");
    s->generation_held =
        slice_equal(generation, slice_of(known_users_relied_on(&s->memory->users, p)));
    known_users_generation(&s->memory->users, p, generation);
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
    return i <= s->n_visit_questions ? merge_visits_take(s->visits, i - 1, reply)
                                     : merge_activity_take(s->activity, reply);
}

/* ---- deciding ---- */

/* Is @a behind @b, that is, is less counted? */
static bool is_behind(struct log_cursor a, struct log_cursor b)
{
    return a.whole < b.whole || (a.whole == b.whole && a.events < b.events);
}

/* Is event @i (from 0) of entry @n counted? */
static bool has_event(struct log_cursor cursor, uint64_t n, uint64_t i)
{
    return n <= cursor.whole || (n == cursor.whole + 1 && i < cursor.events);
}

static bool add_user(struct share *s, const struct row *row, const struct write_plan *plan)
{
    if (s->day_minute_s != plan->minute_s || s->day_zone != plan->zone) {
        s->day_zone = plan->zone;
        s->day_minute_s = plan->minute_s;
        s->day = activity_day_make(plan->zone, plan->retention, plan->minute_s);
    }
    return merge_activity_add(s->activity, row, &s->day, find_known(s, row));
}

static bool add_visit(
    struct share *s, const struct row *row, const struct write_plan *plan, int64_t arrival_s)
{
    if (merge_visits_add(s->visits, row, arrival_s) &&
        !(merge_counts_add(s->starts, row, true, plan->targets, plan->n) &&
            merge_counts_add(s->starts, row, false, plan->targets, plan->n))) {
        return false;
    }
    if (row->user.n == 0) {
        return true;
    }
    return add_user(s, row, plan) &&
           (!s->core->config.seen.on || merge_seen_add(s->seen, row, arrival_s));
}

static bool merge_task(
    struct share *s, const struct row *row, enum task_kind kind, struct write_plan *plan)
{
    write_plan_in(plan, row->zone);
    write_plan_at(plan, row->at_s);
    s->late = s->late || plan->n > 1;
    s->oldest_s = plan->minute_s < s->oldest_s ? plan->minute_s : s->oldest_s;
    s->n_rows++;
    s->n_events += kind == TASK_SITE;
    if (kind == TASK_VISIT) {
        return add_visit(s, row, plan, s->batch->entries[row->unit].arrival_s);
    }
    return merge_counts_add(s->counts, row, kind == TASK_SITE, plan->targets, plan->n);
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
    for (uint32_t i = s->cut.from; i < s->cut.to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        const struct batch_entry *entry = &s->batch->entries[row->unit];
        uint32_t event = (uint32_t)(row - s->batch->rows) - entry->first_row;
        if (fates[entry->log] == LOG_COUNTS &&
            !has_event(s->cursors[entry->log], entry->entry->n, event) &&
            !merge_task(s, row, kind, &plan)) {
            return false;
        }
    }
    return true;
}

/* Where the cursors go.  False: entries are missing of log *ret_log. */
static bool move_cursors(struct share *s, const enum log_fate fates[BATCH_LOGS], uint32_t *ret_log)
{
    for (uint32_t l = 0; l < s->batch->n_logs; l++) {
        s->moves[l] = false;
        if (fates[l] != LOG_COUNTS) {
            continue;
        }
        s->targets[l] = batch_cursor(s->batch, l, s->cut.to_row);
        s->moves[l] = is_behind(s->cursors[l], s->targets[l]);
        if (s->moves[l] && s->cursors[l].whole < s->batch->logs[l].from) {
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
    if (s->relies_on_users && !s->generation_held) {
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

/* Never used before: what was remembered under an id must not come true again. */
static void write_new_id(struct share *s, struct buffer *out, const char *before)
{
    char id[96];
    int n = snprintf(
        id, sizeof(id), "%s%s.%llu", before, s->memory->id, (unsigned long long)++s->memory->n_ids);
    resp_word(out, id, (size_t)n);
}

/* Minutes that end by `over` are taken for over, a minute's grace included.  It is moved on by this
 * fold's clock, or gets a new id where this fold writes to such a minute.  Returns the new instant,
 * or -1 where it stays. */
static int64_t new_over_s(const struct share *s)
{
    int64_t over_s = (s->now_ms / 1000 / MINUTE_S - 1) * MINUTE_S;
    int64_t was_s = s->view.over.n == 0 ? 0 : s->view.over_s;
    if (s->n_rows > 0 && (over_s > was_s || s->oldest_s < was_s)) {
        return over_s > was_s ? over_s : was_s;
    }
    return -1;
}

static void write_state(struct share *s, struct buffer *out)
{
    struct key key;
    int64_t over_s = new_over_s(s);
    size_t n = (size_t)s->late + (over_s >= 0);
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        n += s->moves[l];
    }
    key_fixed(&key, s->tag, "state", SLICE(""));
    resp_head(out, 2 + 2 * n);
    resp_text(out, "HSET");
    resp_word(out, key.p, key.n);
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        char text[LOG_CURSOR_TEXT];
        if (s->moves[l]) {
            resp_text(out, s->batch->logs[l].id);
            resp_word(out, text, log_cursor_print(&s->targets[l], text));
        }
    }
    if (s->late) {
        resp_text(out, "ver");
        write_new_id(s, out, "");
    }
    if (over_s >= 0) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%011lld ", (long long)over_s);
        resp_text(out, "over");
        write_new_id(s, out, text);
    }
}

/* Have @member added to a set, unless it is known to be there. */
static void announce(struct share *s, struct members *members, struct slice member)
{
    bool is_new = !announced_has(&s->memory->announced, s->cut.partition, member);
    for (size_t i = members->n; is_new && i > 0 && i + 8 > members->n; i--) {
        is_new = !slice_equal(members->texts[i - 1], member);
    }
    if (!is_new || s->failed) {
        return;
    }
    char *copy = arena_alloc(&s->arena, member.n);
    if (copy == NULL ||
        !array_reserve(&members->texts, &members->capacity, members->n, sizeof(*members->texts))) {
        s->failed = true;
        return;
    }
    memcpy(copy, member.p, member.n);
    members->texts[members->n++] = (struct slice){copy, member.n};
}

static void announce_target(void *data, struct slice site, const struct write_target *target)
{
    struct share *s = data;
    if (target->announce) {
        struct key member;
        key_open_member(&member, site, target->parent);
        announce(s, &s->open, (struct slice){member.p, member.n});
    }
}

static void announce_sites(struct share *s)
{
    struct slice last = {NULL, 0};
    for (uint32_t i = s->cut.from; i < s->cut.to; i++) {
        enum task_kind kind;
        const struct row *row = task_row(s, i, &kind);
        if (kind == TASK_SITE && !slice_equal(row->site, last)) {
            last = row->site;
            announce(s, &s->sites, row->site);
        }
    }
}

/* SADD of the members, some at a time.  Returns how many commands. */
static size_t write_members(
    struct share *s, const struct members *members, const char *set, struct buffer *out)
{
    struct key key;
    size_t n = 0;
    key_fixed(&key, s->tag, set, SLICE(""));
    for (size_t i = 0; i < members->n; n++) {
        size_t end = members->n - i > MEMBERS_MAX ? i + MEMBERS_MAX : members->n;
        resp_head(out, 2 + end - i);
        resp_text(out, "SADD");
        resp_word(out, key.p, key.n);
        for (; i < end; i++) {
            resp_word(out, members->texts[i].p, members->texts[i].n);
        }
    }
    return n;
}

size_t share_write_commands(struct share *s, struct buffer *out)
{
    size_t n = 1;
    write_state(s, out);
    if (s->n_rows == 0) {
        s->seen_reply = n;
        return n;
    }
    merge_counts_targets(s->counts, announce_target, s);
    merge_counts_targets(s->starts, announce_target, s);
    announce_sites(s);
    n += write_members(s, &s->open, "open", out);
    n += write_members(s, &s->sites, "sites", out);
    n += merge_counts_write(s->counts, s->tag, s->now_ms, out);
    n += merge_counts_write(s->starts, s->tag, s->now_ms, out);
    n += merge_visits_write(s->visits, s->tag, out);
    n += merge_activity_write(s->activity, s->tag, s->now_ms, out);
    s->seen_reply = n;
    n += merge_seen_write(s->seen, s->tag, s->core->config.seen.keep_s, s->now_ms, out);
    out->failed = out->failed || s->failed;
    return n;
}

size_t share_write_expected(const struct share *s, struct buffer *out)
{
    static const char *const names[LOG_FIELDS] = {"cfg", "st", "ver", "kept", "over", "users"};
    size_t n = LOG_FIELDS + s->batch->n_logs;
    resp_decimal(out, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        resp_text(out, i < LOG_FIELDS ? names[i] : s->batch->logs[i - LOG_FIELDS].id);
        resp_word(out, s->read[i].p, s->read[i].n);
    }
    return 1 + 2 * n;
}

static void learn_user(void *data, const struct visitor_id *id, uint32_t index, int32_t active_day)
{
    struct share *s = data;
    known_users_add(&s->memory->users, s->cut.partition, id, index, active_day);
}

static void learn_members(struct share *s, const struct members *members)
{
    for (size_t i = 0; i < members->n; i++) {
        announced_add(&s->memory->announced, s->cut.partition, members->texts[i]);
    }
}

void share_done(struct share *s, const struct reply *replies, struct buffer *ret_due)
{
    learn_members(s, &s->open);
    learn_members(s, &s->sites);
    merge_activity_users(s->activity, learn_user, s);
    merge_seen_due(
        s->seen, s->tag, s->core->config.seen.keep_s, s->now_ms, replies + s->seen_reply, ret_due);
}

size_t share_events(const struct share *s)
{
    return s->n_events;
}

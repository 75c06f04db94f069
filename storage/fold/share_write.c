/* share_write.c - the commands that count a partition's share, and what is learnt behind them. */
#include "storage/fold/share.h"

#include <stdio.h>

#include "storage/base/index.h"
#include "storage/fold/share_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/time/units.h"

/* Append @before and an id that was never used: what was remembered under an id must not come true
 * again.  Returns a hash of these. */
static uint64_t write_new_id(struct share *s, struct buffer *out, const char *before)
{
    char id[96];
    int n = snprintf(
        id, sizeof(id), "%s%s.%llu", before, s->memory->id, (unsigned long long)++s->memory->n_ids);
    resp_word(out, id, (size_t)n);
    return XXH3_64bits(id, (size_t)n);
}

/* Minutes that end by `over` are taken for over, a minute's grace included.  A fold moves `over` on
 * by its clock, or gives `over` a new id where it writes to such a minute.  Returns the instant for
 * the field, or -1 where the field stays. */
static int64_t new_over_s(const struct share *s)
{
    int64_t over_s = (s->now_ms / 1000 / MINUTE_S - 1) * MINUTE_S;
    int64_t before_s = s->view.over.n == 0 ? 0 : s->view.over_s;
    if (s->n_rows > 0 && (over_s > before_s || s->oldest_s < before_s)) {
        return over_s > before_s ? over_s : before_s;
    }
    return -1;
}

static void write_state(struct share *s, struct buffer *out)
{
    int64_t over_s = new_over_s(s);
    size_t n = (size_t)(s->n_rows > 0) + (size_t)s->late + (over_s >= 0);
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        n += s->moves[l];
    }
    key_command(out, "HSET", s->tag, "state", 2 * n);
    for (size_t l = 0; l < s->batch->n_logs; l++) {
        char text[LOG_CURSOR_TEXT];
        if (s->moves[l]) {
            resp_text(out, s->batch->logs[l].id);
            resp_word(out, text, log_cursor_print(&s->targets[l], text));
        }
    }
    if (s->n_rows > 0) { /* else what others remember of the counters still holds */
        resp_text(out, "fold");
        s->fold = write_new_id(s, out, "");
    }
    if (s->late) {
        resp_text(out, "ver");
        (void)write_new_id(s, out, "");
    }
    if (over_s >= 0) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%011lld ", (long long)over_s);
        resp_text(out, "over");
        (void)write_new_id(s, out, text);
    }
}

/* A hash of the fact that a set of the partition has @member.  A member whose hash is that of a
 * remembered fact would not be added, and its hour would not be rolled up.  So the hash is keyed:
 * senders choose the names of sites, and nobody can look for two with one hash.  By chance a new
 * member meets one of the KNOWN_HASHES facts in one of 2^48 cases.  The batch has rows, so the
 * secret is there. */
static uint64_t announced_hash(const struct share *s, struct slice member)
{
    return identity_name(atomic_load(&s->core->secret), member) ^
           (s->cut.partition + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void share_announce(struct share *s, struct members *members, struct slice member)
{
    bool is_new = !known_hashes_has(&s->memory->hashes, announced_hash(s, member));
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
        share_announce(s, &s->open, key_open_member(&member, site, target->parent));
    }
}

/* Append SADDs of the members, MEMBERS_MAX in each.  Returns how many commands these are. */
static size_t write_members(
    struct share *s, const struct members *members, const char *set, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < members->n; n++) {
        size_t end = members->n - i > MEMBERS_MAX ? i + MEMBERS_MAX : members->n;
        key_command(out, "SADD", s->tag, set, end - i);
        for (; i < end; i++) {
            resp_slice(out, members->texts[i]);
        }
    }
    return n;
}

static void tell_index(void *data, const struct visitor_id *id, uint32_t index, int32_t active_day)
{
    struct share *s = data;
    merge_visits_set_user(s->visits, id, index, active_day);
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
    n += write_members(s, &s->open, "open", out);
    n += write_members(s, &s->sites, "sites", out);
    n += places_write(s->names.places, s->tag, s->now_ms, out);
    char text[ROLLUP_STATE_TEXT];
    rollup_state_print(&s->view.state, text);
    const struct known_keys known = share_known_keys(s);
    if (known.counts != NULL) {
        known_counts_take(known.counts, known.partition, ver_hash(&s->view.fold), s->now_ms);
    }
    s->counts_reply = n;
    n += merge_counts_write(s->counts, s->tag, s->now_ms, &known, slice_of(text), out);
    n += merge_activity_write(s->activity, s->tag, s->now_ms, out);
    merge_activity_users(s->activity, tell_index, s); /* indices are given by now */
    n += merge_visits_write(s->visits, s->tag, out);
    n += merge_first_write(s->first, s->tag, out);
    s->seen_reply = n;
    n += merge_seen_write(s->seen, s->tag, s->core->config.seen.keep_s, s->now_ms, out);
    out->failed = out->failed || s->failed;
    return n;
}

size_t share_write_expected(const struct share *s, struct buffer *out)
{
    static const char *const names[FIELD_CURSORS] = {
        "cfg", "st", "ver", "kept", "over", "fold", "users", "deleted", "deleting"};
    size_t n = FIELD_CURSORS + s->batch->n_logs;
    resp_decimal(out, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        resp_text(out, i < FIELD_CURSORS ? names[i] : s->batch->logs[i - FIELD_CURSORS].id);
        resp_slice(out, s->read[i]);
    }
    return 1 + 2 * n;
}

static void learn_user(void *data, const struct visitor_id *id, uint32_t index, int32_t active_day)
{
    struct share *s = data;
    if (!merge_visits_keeps(s->visits, id)) {
        known_users_add(&s->memory->users, s->cut.partition, id, index, active_day);
    }
}

static void learn_visitor(void *data, const struct visitor_id *id, int64_t slot)
{
    known_visitors_add(&((struct share *)data)->memory->shared->visitors, id, slot);
}

static void learn_members(struct share *s, const struct members *members)
{
    for (size_t i = 0; i < members->n; i++) {
        known_hashes_add(&s->memory->hashes, announced_hash(s, members->texts[i]));
    }
}

/* Remember what the counters have now. */
static void learn_values(struct share *s, const struct reply *replies)
{
    const struct known_keys known = share_known_keys(s);
    if (s->n_rows > 0 && known.counts != NULL) {
        merge_counts_learn_values(s->counts, s->tag, &known, replies + s->counts_reply);
        known_counts_hold(known.counts, known.partition, s->fold);
    }
}

void share_done(struct share *s, const struct reply *replies, struct buffer *ret_due)
{
    learn_values(s, replies);
    merge_seen_due(
        s->seen, s->tag, s->core->config.seen.keep_s, s->now_ms, replies + s->seen_reply, ret_due);
}

void share_learn(struct share *s)
{
    if (share_is_swept(s)) {
        return; /* a deletion takes away what was just written */
    }
    learn_members(s, &s->open);
    learn_members(s, &s->sites);
    merge_visits_users(s->visits, learn_visitor, s);
    merge_activity_users(s->activity, learn_user, s);
    merge_counts_learn_elements(s->counts, &s->memory->sketches);
    merge_counts_learn(s->counts, &s->memory->hashes);
    places_learn(s->names.places, &s->memory->hashes);
}

void share_show(const struct share *s, struct storage_stats *stats)
{
    atomic_fetch_add(&stats->fold_events, (int64_t)s->n_events);
    atomic_fetch_add(&stats->names_capped, (int64_t)s->names.n_capped);
    atomic_fetch_add(&stats->first_actions, (int64_t)merge_first_count(s->first));
}

#include "storage/write/encode.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/schema/settings.h"
#include "storage/fold/announced.h"
#include "storage/fold/known_users.h"
#include "storage/fold/merge_activity.h"
#include "storage/fold/merge_counts.h"
#include "storage/fold/merge_seen.h"
#include "storage/fold/merge_visits.h"

#define ONCE_TTL_MS    (30 * 60 * 1000) /* a flush this old is never applied any more */
#define KEEP_BYTES     (256 * 1024)     /* scratch that is kept between flushes */
#define PARENTS_SEEN   32
#define OLDEST_NONE    99999999999
#define ANNOUNCES_KEPT 8 /* of a part: more are announced again next time */

struct encoder {
    struct core *core;
    const struct pace *pace;
    struct merge_counts *counts;
    struct merge_visits *visits;
    struct merge_activity *activity;
    struct merge_seen *seen;
    struct buffer keys, args, announced;
    size_t n_keys, n_args; /* of the part at hand */

    /* The script being made. */
    struct buffer script_keys, script_args;
    size_t n_script_keys, n_script_args, n_parts;
    const struct flush *direct; /* whose direct requests are in it; NULL: nobody's */
    uint64_t us;

    /* Parents announced by the part at hand: duplicates do no harm, so only a few are remembered.
     */
    struct parent {
        struct slice site;
        struct bucket bucket;
    } parents[PARENTS_SEEN];
    size_t n_parents, n_announced;
    bool late;            /* a bucket closed for writers is written to */
    int64_t oldest_s;     /* minute that is written to; OLDEST_NONE */
    bool relies_on_users; /* what is known of users is used */
    uint64_t n_ids;

    struct announced known;
    struct known_users users;
    struct activity_day day; /* of day_minute_s in day_zone */
    int64_t day_minute_s;
    const struct zone *day_zone;
    struct part *part; /* at hand */
};

struct encoder *encoder_new(struct core *core, const struct pace *pace)
{
    struct encoder *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    e->core = core;
    e->pace = pace;
    e->counts = merge_counts_new();
    e->visits = merge_visits_new();
    e->activity = merge_activity_new();
    e->seen = merge_seen_new();
    if (e->counts == NULL || e->visits == NULL || e->activity == NULL || e->seen == NULL) {
        encoder_free(e);
        return NULL;
    }
    return e;
}

void encoder_free(struct encoder *e)
{
    if (e != NULL) {
        encode_forget(e);
        merge_counts_free(e->counts);
        merge_visits_free(e->visits);
        merge_activity_free(e->activity);
        known_users_release(&e->users);
        merge_seen_free(e->seen);
        buffer_release(&e->keys);
        buffer_release(&e->args);
        buffer_release(&e->announced);
        buffer_release(&e->script_keys);
        buffer_release(&e->script_args);
        free(e);
    }
}

void encode_forget(struct encoder *e)
{
    announced_forget(&e->known);
    known_users_forget_all(&e->users);
}

void encode_forget_users(struct encoder *e, unsigned partition)
{
    known_users_forget(&e->users, partition);
}

/* @learnt: something of seen's, the generation, then the indices of those who had none here.
 * (Something else is what a part is told that was applied before.) */
static void learn_users(struct encoder *e, const struct part *part, const struct reply *learnt)
{
    const struct flush *flush = part->flush;
    size_t next = 2;
    if (learnt->type != REPLY_ARRAY || learnt->n < 2) {
        return;
    }
    known_users_generation(&e->users, part->partition, learnt->items[1].text);
    for (uint32_t i = 0; i < part->n_users; i++) {
        const struct part_user *user = &part->users[i];
        int64_t index = user->index;
        if (user->index == USER_INDEX_NONE) {
            index = next < learnt->n ? reply_integer(&learnt->items[next], -1) : -1;
            next++;
        }
        if (index >= 0 && index < USER_INDEX_NONE) {
            known_users_add(&e->users, part->partition, &flush->rows[user->row].visitor,
                (uint32_t)index, user->active_day);
        }
    }
}

void encode_applied(struct encoder *e, const struct part *part, const struct reply *learnt)
{
    for (uint32_t i = 0; i < part->n_announces; i++) {
        announced_add(&e->known, part->partition, part->announces[i]);
    }
    learn_users(e, part, learnt);
}

/* Have the script add @member to a set, unless it is there; what was announced is remembered with
 * the part. */
static void announce_member(struct encoder *e, struct slice member)
{
    struct flush *flush = e->part->flush;
    if (announced_has(&e->known, e->part->partition, member)) {
        return;
    }
    resp_word(&e->announced, member.p, member.n);
    e->n_announced++;
    struct part *part = e->part;
    uint32_t at = part->n_announces;
    if (at >= ANNOUNCES_KEPT) {
        return;
    }
    if (at >= part->n_announces_kept || !slice_equal(part->announces[at], member)) {
        char *copy = arena_alloc(&flush->arena, member.n);
        if (copy == NULL) {
            return;
        }
        memcpy(copy, member.p, member.n);
        part->announces[at] = (struct slice){copy, member.n};
        part->n_announces_kept = at + 1;
    }
    part->n_announces++;
}

static bool merge_user(
    struct encoder *e, const struct part *part, const struct write_plan *plan, uint32_t number)
{
    const struct row *row = &((const struct flush *)part->flush)->rows[number];
    const struct known_user *known = known_users_find(&e->users, part->partition, &row->visitor);
    if (e->day_minute_s != plan->minute_s || e->day_zone != plan->zone) {
        e->day_zone = plan->zone;
        e->day_minute_s = plan->minute_s;
        e->day = activity_day_make(plan->zone, plan->retention, plan->minute_s);
    }
    e->relies_on_users = e->relies_on_users || known != NULL;
    return merge_activity_add(e->activity, row, number, &e->day, known);
}

static bool merge(struct encoder *e, const struct part *part, struct write_plan *plan)
{
    const struct flush *flush = part->flush;
    struct unit_cursor cursor = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < part->n_tasks; i++) {
        const struct row *row = &flush->rows[part->tasks[i] >> 2];
        enum task_kind kind = (enum task_kind)(part->tasks[i] & 3);
        if (!part_units_pass(part->units, part->n_units, &cursor, row->unit)) {
            continue; /* it is there already */
        }
        write_plan_in(plan, row->zone);
        write_plan_at(plan, row->at_s);
        e->late = e->late || plan->n > 1;
        e->oldest_s = plan->minute_s < e->oldest_s ? plan->minute_s : e->oldest_s;
        if (kind == TASK_VISIT) {
            ok = merge_visits_add(
                e->visits, row, e->core->config.visit_timeout_s, plan->targets, plan->n);
            ok = ok && (row->user.n == 0 || merge_user(e, part, plan, part->tasks[i] >> 2));
            if (row->user.n > 0 && e->core->config.seen.on) {
                ok = ok && merge_seen_add(e->seen, row);
            }
        } else {
            ok = merge_counts_add(e->counts, row, kind == TASK_SITE, plan->targets, plan->n);
        }
    }
    return ok;
}

/* Put (site, parent) into the part's announcements, once as a rule. */
static void announce(void *data, struct slice site, const struct write_target *target)
{
    struct encoder *e = data;
    if (!target->announce) {
        return;
    }
    for (size_t i = 0; i < e->n_parents; i++) {
        const struct parent *p = &e->parents[i];
        if (p->bucket.level == target->parent.level &&
            p->bucket.start_s == target->parent.start_s && slice_equal(p->site, site)) {
            return;
        }
    }
    if (e->n_parents < PARENTS_SEEN) {
        e->parents[e->n_parents++] = (struct parent){site, target->parent};
    }
    struct key member;
    key_open_member(&member, site, target->parent);
    announce_member(e, (struct slice){member.p, member.n});
}

static void write_announcements(struct encoder *e)
{
    buffer_clear(&e->announced, KEEP_BYTES);
    e->n_parents = e->n_announced = 0;
    merge_counts_targets(e->counts, announce, e);
    merge_visits_targets(e->visits, announce, e);
    resp_decimal(&e->args, (int64_t)e->n_announced);
    buffer_append(&e->args, e->announced.p, e->announced.n);
    e->args.failed = e->args.failed || e->announced.failed;
    e->n_args += 1 + e->n_announced;
}

static void write_sites(struct encoder *e)
{
    const struct flush *flush = e->part->flush;
    const struct slice *last = NULL;
    buffer_clear(&e->announced, KEEP_BYTES);
    e->n_announced = 0;
    for (uint32_t i = 0; i < e->part->n_tasks; i++) {
        const struct slice *site = &flush->rows[e->part->tasks[i] >> 2].site;
        if ((e->part->tasks[i] & 3) == TASK_SITE && (last == NULL || !slice_equal(*site, *last))) {
            last = site;
            announce_member(e, *site);
        }
    }
    resp_decimal(&e->args, (int64_t)e->n_announced);
    buffer_append(&e->args, e->announced.p, e->announced.n);
    e->args.failed = e->args.failed || e->announced.failed;
    e->n_args += 1 + e->n_announced;
}

static void write_fixed_keys(struct encoder *e, const struct part *part, const char *tag)
{
    static const char *const names[] = {"state", "once:", "open", "sites"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct key key;
        key_fixed(&key, tag, names[i], i == 1 ? slice_of(part->writer_id) : SLICE(""));
        resp_word(&e->keys, key.p, key.n);
    }
    e->n_keys = 4;
}

/* New with every encoding: where Redis lost its last second and is sent the same part again, others
 * may have written in between, and what was remembered under an id must not come true again. */
static void write_new_id(struct encoder *e, struct buffer *out)
{
    char id[WRITER_ID_TEXT + 24];
    int n = snprintf(id, sizeof(id), "%s.%llu", e->part->writer_id, (unsigned long long)++e->n_ids);
    resp_word(out, id, (size_t)n);
}

static void write_fixed_args(
    struct encoder *e, const struct part *part, const struct partition_view *view)
{
    char st[ROLLUP_STATE_TEXT];
    resp_word(&e->args, st, rollup_state_print(&view->state, st));
    if (e->late) {
        write_new_id(e, &e->args);
    } else {
        resp_text(&e->args, "");
    }
    resp_decimal(&e->args, (int64_t)part->seq);
    resp_decimal(&e->args, part->gen_ms);
    resp_text(
        &e->args, e->relies_on_users ? known_users_relied_on(&e->users, part->partition) : "");
    resp_decimal(&e->args, e->oldest_s);
    e->n_args = 6;
}

static void note_user(void *data, uint32_t number, uint32_t index, int32_t active_day)
{
    struct part *part = data;
    part->users[part->n_users++] = (struct part_user){number, index, active_day};
}

/* Keep with the part whose bits it sets: they are known once it is applied. */
static bool note_users(struct encoder *e, struct part *part)
{
    struct flush *flush = part->flush;
    part->n_users = 0;
    if (part->users == NULL) { /* at most one a task, however often it is encoded */
        part->users = arena_alloc(&flush->arena, part->n_tasks * sizeof(*part->users));
    }
    if (part->users == NULL) {
        return false;
    }
    merge_activity_users(e->activity, note_user, part);
    return true;
}

void encode_begin(struct encoder *e)
{
    buffer_clear(&e->script_keys, KEEP_BYTES);
    buffer_clear(&e->script_args, KEEP_BYTES);
    e->n_script_keys = e->n_script_args = e->n_parts = 0;
    e->direct = NULL;
    e->us = 0;
}

bool encode_has_room(const struct encoder *e, const struct part *part)
{
    return e->n_parts == 0 || (e->core->one_node && e->us + part->us <= pace_limit_us(e->pace));
}

uint64_t encode_us(const struct encoder *e)
{
    return e->us;
}

bool encode_add(struct encoder *e, struct part *part, const struct partition_view *view)
{
    const char *tag = e->core->partitions.tag[part->partition];
    struct write_plan plan;
    write_plan_init(&plan, zone_utc(), &view->retention, &view->state);
    merge_counts_clear(e->counts);
    merge_visits_clear(e->visits);
    merge_activity_clear(e->activity);
    merge_seen_clear(e->seen);
    buffer_clear(&e->keys, KEEP_BYTES);
    buffer_clear(&e->args, KEEP_BYTES);
    e->late = e->relies_on_users = false;
    e->oldest_s = OLDEST_NONE;
    e->day_minute_s = INT64_MIN;
    e->part = part;
    part->n_announces = 0;
    if (part->announces == NULL) {
        struct flush *flush = part->flush;
        part->announces = arena_alloc(&flush->arena, ANNOUNCES_KEPT * sizeof(*part->announces));
    }
    if (part->announces == NULL || !merge(e, part, &plan) || !note_users(e, part)) {
        return false;
    }
    write_fixed_keys(e, part, tag);
    write_fixed_args(e, part, view);
    part_units_write(part->units, part->n_units, ((const struct flush *)part->flush)->units, tag,
        e->core->one_node ? &e->core->partitions : NULL, &e->keys, &e->n_keys, &e->args,
        &e->n_args);
    write_announcements(e);
    write_sites(e);
    merge_counts_write(e->counts, tag, &e->keys, &e->n_keys, &e->args, &e->n_args);
    merge_visits_write(e->visits, tag, e->core->config.visit_timeout_s, &e->keys, &e->n_keys,
        &e->args, &e->n_args);
    merge_activity_write(e->activity, tag, &e->keys, &e->n_keys, &e->args, &e->n_args);
    merge_seen_write(e->seen, tag, part->gen_ms / 1000, e->core->config.seen.keep_s, &e->keys,
        &e->n_keys, &e->args, &e->n_args);
    resp_decimal(&e->script_args, (int64_t)e->n_keys);
    resp_decimal(&e->script_args, (int64_t)e->n_args);
    buffer_append(&e->script_keys, e->keys.p, e->keys.n);
    buffer_append(&e->script_args, e->args.p, e->args.n);
    e->n_script_keys += e->n_keys;
    e->n_script_args += 2 + e->n_args;
    e->n_parts++;
    e->us += part->us;
    return !e->keys.failed && !e->args.failed;
}

void encode_direct(struct encoder *e, const struct flush *flush)
{
    e->direct = flush;
}

/* What the script knows of the direct requests: their keys, or their records. */
static void write_direct(struct encoder *e, struct buffer *out, bool keys)
{
    const struct partitions *partitions = &e->core->partitions;
    for (size_t i = 0; e->direct != NULL && i < e->direct->n_units; i++) {
        const struct unit *unit = &e->direct->units[i];
        if (unit->direct && keys) {
            struct key key;
            key_claim(&key, partitions->tag[claim_partition(partitions, &unit->key)], &unit->key);
            resp_word(out, key.p, key.n);
        } else if (unit->direct) {
            resp_word(out, unit->record.p, unit->record.n);
        }
    }
}

bool encode_end(struct encoder *e, const struct script_digests *scripts, struct buffer *out)
{
    if (e->n_parts == 0) {
        return true;
    }
    size_t n_direct = e->direct != NULL ? e->direct->n_direct : 0;
    script_head(
        out, scripts, SCRIPT_WRITE, n_direct + e->n_script_keys, 5 + n_direct + e->n_script_args);
    write_direct(e, out, true);
    buffer_append(out, e->script_keys.p, e->script_keys.n);
    resp_decimal(out, (int64_t)e->n_parts);
    resp_text(out, e->core->cfg);
    resp_decimal(out, ONCE_TTL_MS);
    write_new_id(e, out);
    resp_decimal(out, (int64_t)n_direct);
    write_direct(e, out, false);
    buffer_append(out, e->script_args.p, e->script_args.n);
    return !out->failed && !e->script_keys.failed && !e->script_args.failed;
}

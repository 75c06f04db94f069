#include "storage/prepare/prepare.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/random_id.h"
#include "storage/prepare/prepare_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/server.h"

/* Settings that come back are replaced again, but only so often: another process may be replacing
 * them, too. */
#define REPLACE_TIMES 8

bool preparation_ask(struct preparation *p, struct asks *asks, redis_take_fn *take)
{
    return asks_run(asks, p->deadline_ms, take, p) == REDIS_OK_STATUS;
}

/* May this process replace the settings @cfg of @partition by its own? */
static bool may_replace(const struct preparation *p, unsigned partition, struct slice cfg)
{
    bool adopt = !part_set_has(&p->known->settled, partition);
    for (unsigned i = 0; i < p->known->n_replaced; i++) {
        if (slice_equal(cfg, slice_of(p->known->replaced[i].cfg))) {
            return adopt || p->known->replaced[i].times < REPLACE_TIMES;
        }
    }
    return adopt;
}

static void remember_replaced(struct prepared_data *known, struct slice cfg)
{
    for (unsigned i = 0; i < known->n_replaced; i++) {
        if (slice_equal(cfg, slice_of(known->replaced[i].cfg))) {
            known->replaced[i].times++;
            return;
        }
    }
    if (known->n_replaced < REPLACED_MAX && cfg.n < SETTINGS_TEXT) {
        memcpy(known->replaced[known->n_replaced].cfg, cfg.p, cfg.n);
        known->replaced[known->n_replaced].cfg[cfg.n] = '\0';
        known->replaced[known->n_replaced++].times = 1;
    }
}

static bool note_change(struct preparation *p, unsigned partition, const struct reply *fields)
{
    struct retention old;
    uint64_t set;
    struct rollup_state state;
    struct changed *c = &p->changed[partition];
    const struct reply *cfg = &fields->items[0];
    const struct reply *st = &fields->items[1];
    const struct reply *zones = &fields->items[STATE_FIELDS];
    if (!settings_parse(cfg->text, p->core->partitions.n, &old, &set) ||
        !rollup_state_parse(st->text, &state) ||
        (fields->items[3].type == REPLY_TEXT && !kept_parse(fields->items[3].text, &old))) {
        return preparation_refuse(p, "a partition's state is not one of ours");
    }
    if (set != p->core->data_set) {
        return preparation_refuse_foreign(
            p, "a partition has the data of another installation: its data set is another one");
    }
    if (!may_replace(p, partition, cfg->text)) {
        return preparation_refuse(
            p, "the data is kept with other settings (--keep-*, site.*.tz) by another process");
    }
    char *copy = malloc(cfg->text.n + st->text.n + 1);
    if (copy == NULL || !zone_moves_add(&p->moves, p->core, partition,
                            zones->type == REPLY_TEXT ? zones->text : SLICE(""))) {
        free(copy);
        return preparation_complain(p, "out of memory, or a partition's zones are none of ours");
    }
    memcpy(copy, cfg->text.p, cfg->text.n);
    memcpy(copy + cfg->text.n, st->text.p, st->text.n);
    if (p->n_changed == 0) {
        remember_replaced(p->known, cfg->text);
    }
    c->is = true;
    c->cfg = (struct slice){copy, cfg->text.n};
    c->st = (struct slice){copy + cfg->text.n, st->text.n};
    c->retention = retention_changed(&old, &p->core->config.retention, &state);
    p->n_changed++;
    /* cppcheck-suppress memleak ; forget_changes frees it */
    return true;
}

static bool take_partition(void *data, size_t i, const struct reply *reply)
{
    struct preparation *p = data;
    struct partition_view view;
    unsigned partition = p->asked[i];
    if (reply->type == REPLY_ERROR) {
        return preparation_complain(p, reply->text.p);
    }
    struct reply fields = *reply; /* without the last item, which is `zones` */
    fields.n = reply->type == REPLY_ARRAY && reply->n == STATE_FIELDS + 1 ? STATE_FIELDS : 0;
    if (p->is_made && fields.n > 0 && core_state_lost(p->core, partition, &fields)) {
        return true;
    }
    if (core_parse_state(p->core, &fields, &view)) {
        core_set_view(p->core, partition, &view);
        return true;
    }
    if (fields.n == 0 || reply->items[0].type != REPLY_TEXT) {
        return preparation_refuse(p, "a partition's state is not one of ours");
    }
    return note_change(p, partition, reply);
}

static bool learn_partitions(struct preparation *p)
{
    struct core *core = p->core;
    struct rollup_state empty = rollup_state_initial(redis_clock_ms(&core->clock) / 1000);
    char st[ROLLUP_STATE_TEXT];
    size_t st_n = rollup_state_print(&empty, st);
    struct asks asks = asks_to(p->session);
    for (unsigned i = 0; i < core->partitions.n; i++) {
        char ver[33];
        if (part_set_has(&p->away, i)) {
            continue;
        }
        p->asked[asks.n] = (uint16_t)i;
        struct buffer *out = asks_begin(&asks, i);
        if (p->is_made) { /* a state that is not there was lost, and is not made anew */
            partition_state_ask(out, core->partitions.tag[i], 1);
            resp_text(out, "zones");
            continue;
        }
        random_id(ver, sizeof(ver));
        script_head(out, &p->session->scripts, SCRIPT_INIT, 1, 4);
        key_put(out, core->partitions.tag[i], "state");
        resp_text(out, core->cfg);
        resp_word(out, st, st_n);
        resp_text(out, ver);
        resp_text(out, core->sites.text);
    }
    return preparation_ask(p, &asks, take_partition);
}

/* Take the answer about one change.  0: another process was faster, and learn_partitions() will
 * decide anew. */
static bool take_change(void *data, size_t i, const struct reply *reply)
{
    (void)i;
    return reply->type == REPLY_INTEGER || preparation_not_ours(data, reply);
}

static bool take_answer(void *data, size_t i, const struct reply *reply)
{
    struct preparation *p = data;
    const struct zone_move *move = &p->moves.moves[i];
    if (reply->type != REPLY_INTEGER) {
        return preparation_not_ours(p, reply);
    }
    if (reply->integer == 0) {
        return true;
    }
    char text[128 + sizeof(*move)];
    (void)snprintf(text, sizeof(text),
        "site %s has data, cut in %s: site.%s.tz = %s cannot change that any more", move->site,
        move->theirs, move->site, move->ours);
    return preparation_refuse(p, text);
}

/* Refuse if a site that would get another zone has data. */
static bool check_moves(struct preparation *p)
{
    struct asks asks = asks_to(p->session);
    zone_moves_ask(&p->moves, p->core, &asks);
    return p->moves.n == 0 || preparation_ask(p, &asks, take_answer);
}

static bool change_settings(struct preparation *p)
{
    struct core *core = p->core;
    struct buffer names;
    buffer_init(&names);
    struct asks asks = asks_to(p->session);
    for (unsigned i = 0; i < core->partitions.n; i++) {
        if (!p->changed[i].is) {
            continue;
        }
        char ver[33];
        char kept[SETTINGS_TEXT];
        random_id(ver, sizeof(ver));
        kept_print(&p->changed[i].retention, kept);
        buffer_clear(&names, SIZE_MAX);
        size_t n_names = zone_moves_put(&p->moves, i, &names);
        struct buffer *out = asks_begin(&asks, i);
        script_head(out, &p->session->scripts, SCRIPT_SETTINGS, 2, 6 + n_names);
        key_put(out, core->partitions.tag[i], "state");
        key_put(out, core->partitions.tag[i], "sites");
        resp_slice(out, p->changed[i].cfg);
        resp_slice(out, p->changed[i].st);
        resp_text(out, core->cfg);
        resp_text(out, kept);
        resp_text(out, ver);
        resp_text(out, core->sites.text);
        buffer_append(out, names.p, names.n);
        out->failed = out->failed || names.failed;
    }
    bool ok = preparation_ask(p, &asks, take_change);
    buffer_release(&names);
    if (ok) {
        core_notice(core, STORAGE_SETTINGS_CHANGED, core->cfg);
    }
    return ok;
}

static void forget_changes(struct preparation *p)
{
    for (unsigned i = 0; i < PARTITIONS_MAX; i++) {
        if (p->changed[i].is) {
            free((void *)(uintptr_t)p->changed[i].cfg.p); /* one block with st */
            p->changed[i].is = false;
        }
    }
    p->n_changed = 0;
    zone_moves_release(&p->moves);
}

static bool take_ok(void *data, size_t i, const struct reply *reply)
{
    (void)i;
    return reply->type != REPLY_ERROR || preparation_complain(data, reply->text.p);
}

void preparation_put_made(const struct preparation *p, struct asks *asks)
{
    resp_text(asks_command(asks, p->core, 0, "SET", "made", 1), "1");
}

/* In a cluster: write down that from now on a partition without a state has lost it. */
static bool note_made(struct preparation *p)
{
    if (!p->core->is_spread || p->is_made) {
        return true;
    }
    struct asks asks = asks_to(p->session);
    preparation_put_made(p, &asks);
    return preparation_ask(p, &asks, take_ok);
}

/* Note that the partitions whose servers are there have this process's settings. */
static void note_settled(struct preparation *p)
{
    for (unsigned i = 0; i < p->core->partitions.n; i++) {
        if (!part_set_has(&p->away, i)) {
            part_set_add(&p->known->settled, i);
        }
    }
    p->known->n_away = p->n_away;
    p->known->has_made = p->core->is_spread;
    atomic_store(&p->core->settings_differ, false);
    atomic_store(&p->core->is_foreign, false);
    if (p->n_away > 0) {
        core_notice(p->core, STORAGE_DEGRADED, p->why_away);
    }
    if (p->few_replicas[0] != '\0') {
        core_notice(p->core, STORAGE_FEW_REPLICAS, p->few_replicas);
    }
}

/* Prepare the data, once the servers were looked at. */
static bool prepare_data(struct preparation *p)
{
    bool ok = prepare_data_set(p) && learn_partitions(p);
    for (int tries = 0; ok && p->n_changed > 0 && tries < 10; tries++) {
        ok = check_moves(p) && change_settings(p);
        forget_changes(p);
        ok = ok && learn_partitions(p);
    }
    ok = ok && p->n_changed == 0 && note_made(p);
    forget_changes(p);
    if (ok) {
        note_settled(p);
    }
    return ok;
}

/* A preparation, which the caller frees.  NULL: out of memory, and session->why says so. */
static struct preparation *preparation_new(
    struct core *core, struct session *session, int64_t deadline_ms)
{
    struct preparation *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        (void)snprintf(session->why, sizeof(session->why), "out of memory");
        return NULL;
    }
    p->core = core;
    p->session = session;
    p->deadline_ms = deadline_ms;
    (void)snprintf(
        p->meta, sizeof(p->meta), "schema=%d partitions=%u", KEY_SCHEMA, core->partitions.n);
    (void)preparation_complain(p, "the connection was lost while it was prepared");
    return p;
}

/* In a cluster: which partitions are left out?  False: the start cannot go on without them. */
static bool find_away(struct preparation *p)
{
    char why[sizeof(p->why_away)];
    for (unsigned i = 0; p->core->is_spread && i < p->core->partitions.n; i++) {
        if (server_away_ms(p->core, i, why, sizeof(why)) < SERVER_PATIENCE_MS) {
            continue;
        }
        if (p->n_away++ == 0) {
            servers_blame(p->core, p->why_away, sizeof(p->why_away));
        }
        part_set_add(&p->away, i);
    }
    if (!part_set_has(&p->away, 0)) {
        return true;
    }
    char text[sizeof(p->why_away) + 64];
    server_name(p->core, 0, why, sizeof(why));
    (void)snprintf(text, sizeof(text), "%s cannot be reached: it has the data's secret and clock",
        why[0] == '\0' ? "the server of partition 0" : why);
    return preparation_complain(p, text);
}

bool session_prepare(struct session *session, struct core *core, struct prepared_data *known,
    bool is_first, int64_t deadline_ms)
{
    struct preparation *p = preparation_new(core, session, deadline_ms);
    if (p == NULL) {
        return false;
    }
    atomic_store(&core->emptied, false); /* before the look: a later loss must be noted again */
    period_secrets_doubt(&core->period_secrets);
    p->known = known;
    p->is_first = is_first;
    bool ok = find_away(p) && (core->is_spread ? prepare_cluster(p) : prepare_server(p)) &&
              prepare_replicas(p) && prepare_data(p);
    free(p);
    return ok;
}

bool session_check(struct session *session, struct core *core, int64_t deadline_ms)
{
    struct preparation *p = preparation_new(core, session, deadline_ms);
    bool ok = p != NULL && prepare_server(p);
    free(p);
    return ok;
}

#include "storage/core/prepare.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/core/prepare_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* Settings that come back are replaced again, but only so often: another process may be replacing
 * them, too. */
#define REPLACE_TIMES 8

bool preparation_ask(struct preparation *p, struct session *session, struct buffer *b, size_t n,
    int64_t deadline_ms, redis_take_fn *take)
{
    return redis_ask_all(session->redis, b, n, deadline_ms, take, p) == REDIS_OK_STATUS;
}

static bool take_schema(void *data, size_t i, const struct reply *reply)
{
    struct preparation *p = data;
    (void)i;
    if (reply->type != REPLY_ARRAY || reply->n != 2) {
        return preparation_complain(
            p, reply->type == REPLY_ERROR ? reply->text.p : "no answer of ours");
    }
    if (!slice_equal(reply->items[0].text, slice_of(p->meta))) {
        return preparation_refuse_meta(p, reply->items[0].text, "the key meta is not one of ours");
    }
    if (reply->items[1].text.n != SECRET_SIZE) {
        return preparation_refuse(p, "the secret is not one of ours");
    }
    memcpy(p->secret.bytes, reply->items[1].text.p, SECRET_SIZE);
    return true;
}

/* Give the data its meta and its secret, or learn them. */
static bool learn_schema(struct session *session, struct preparation *p, int64_t deadline_ms)
{
    const struct secret *known = atomic_load(&p->core->secret);
    const char *tag = p->core->partitions.tag[0];
    struct key meta;
    struct key secret;
    struct buffer b;
    buffer_init(&b);
    key_fixed(&meta, tag, "meta", SLICE(""));
    key_fixed(&secret, tag, "secret", SLICE(""));
    if (known != NULL) {
        /* A Redis that has lost everything gets the secret back, so visitors stay the same. */
        p->secret = *known;
    } else {
        randombytes_buf(p->secret.bytes, SECRET_SIZE);
    }
    script_head(&b, &session->scripts, SCRIPT_SCHEMA, 2, 2);
    resp_word(&b, meta.p, meta.n);
    resp_word(&b, secret.p, secret.n);
    resp_text(&b, p->meta);
    resp_word(&b, p->secret.bytes, SECRET_SIZE);
    bool ok = preparation_ask(p, session, &b, 1, deadline_ms, take_schema);
    buffer_release(&b);
    return ok;
}

/* Keep the secret for all threads.  Once published it never changes. */
static bool publish_secret(struct preparation *p)
{
    const struct secret *known = atomic_load(&p->core->secret);
    if (known != NULL && memcmp(known, &p->secret, sizeof(*known)) == 0) {
        return true;
    }
    if (known != NULL) {
        return preparation_refuse(p, "this is another Redis than before: its secret differs");
    }
    struct secret *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return preparation_complain(p, "out of memory");
    }
    *copy = p->secret;
    atomic_store(&p->core->secret, copy);
    return true;
}

/* May this process replace the settings @cfg by its own? */
static bool may_replace(const struct preparation *p, struct slice cfg)
{
    for (unsigned i = 0; i < p->replaced->n; i++) {
        if (slice_equal(cfg, slice_of(p->replaced->settings[i].cfg))) {
            return p->adopt || p->replaced->settings[i].times < REPLACE_TIMES;
        }
    }
    return p->adopt;
}

static void remember_replaced(struct replaced_settings *replaced, struct slice cfg)
{
    for (unsigned i = 0; i < replaced->n; i++) {
        if (slice_equal(cfg, slice_of(replaced->settings[i].cfg))) {
            replaced->settings[i].times++;
            return;
        }
    }
    if (replaced->n < REPLACED_MAX && cfg.n < SETTINGS_TEXT) {
        memcpy(replaced->settings[replaced->n].cfg, cfg.p, cfg.n);
        replaced->settings[replaced->n].cfg[cfg.n] = '\0';
        replaced->settings[replaced->n++].times = 1;
    }
}

static bool note_change(struct preparation *p, size_t i, const struct reply *fields)
{
    struct retention old;
    struct rollup_state state;
    struct changed *c = &p->changed[i];
    const struct reply *cfg = &fields->items[0];
    const struct reply *st = &fields->items[1];
    const struct reply *zones = &fields->items[STATE_FIELDS];
    if (!settings_parse(cfg->text, p->core->partitions.n, &old) ||
        !rollup_state_parse(st->text, &state) ||
        (fields->items[3].type == REPLY_TEXT && !kept_parse(fields->items[3].text, &old))) {
        return preparation_refuse(p, "a partition's state is not one of ours");
    }
    if (!may_replace(p, cfg->text)) {
        return preparation_refuse(
            p, "the data is kept with other settings (--keep-*, site.*.tz) by another process");
    }
    char *copy = malloc(cfg->text.n + st->text.n + 1);
    if (copy == NULL || !zone_moves_add(&p->moves, p->core, (unsigned)i,
                            zones->type == REPLY_TEXT ? zones->text : SLICE(""))) {
        free(copy);
        return preparation_complain(p, "out of memory, or a partition's zones are none of ours");
    }
    memcpy(copy, cfg->text.p, cfg->text.n);
    memcpy(copy + cfg->text.n, st->text.p, st->text.n);
    if (p->n_changed == 0) {
        remember_replaced(p->replaced, cfg->text);
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
    if (reply->type == REPLY_ERROR) {
        return preparation_complain(p, reply->text.p);
    }
    struct reply fields = *reply; /* without the last item, which is `zones` */
    fields.n = reply->type == REPLY_ARRAY && reply->n == STATE_FIELDS + 1 ? STATE_FIELDS : 0;
    if (core_parse_state(p->core, &fields, &view)) {
        core_set_view(p->core, (unsigned)i, &view);
        return true;
    }
    if (reply->type != REPLY_ARRAY || reply->n != STATE_FIELDS + 1 ||
        reply->items[0].type != REPLY_TEXT) {
        return preparation_refuse(p, "a partition's state is not one of ours");
    }
    return note_change(p, i, reply);
}

static void random_ver(char text[33])
{
    unsigned char bytes[16];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(text, 33, bytes, sizeof(bytes));
}

static bool learn_partitions(struct session *session, struct preparation *p, int64_t deadline_ms)
{
    struct core *core = p->core;
    struct rollup_state empty =
        rollup_state_initial(zone_utc(), redis_clock_ms(&core->clock) / 1000);
    char st[ROLLUP_STATE_TEXT];
    size_t st_n = rollup_state_print(&empty, st);
    struct buffer b;
    buffer_init(&b);
    for (unsigned i = 0; i < core->partitions.n; i++) {
        struct key state;
        char ver[33];
        random_ver(ver);
        key_fixed(&state, core->partitions.tag[i], "state", SLICE(""));
        script_head(&b, &session->scripts, SCRIPT_INIT, 1, 4);
        resp_word(&b, state.p, state.n);
        resp_text(&b, core->cfg);
        resp_word(&b, st, st_n);
        resp_text(&b, ver);
        resp_text(&b, core->sites.text);
    }
    bool ok = preparation_ask(p, session, &b, core->partitions.n, deadline_ms, take_partition);
    buffer_release(&b);
    return ok;
}

static bool take_change(void *data, size_t i, const struct reply *reply)
{
    (void)data;
    (void)i;
    return reply->type ==
           REPLY_INTEGER; /* 0: another process was faster; learn_partitions() decides next */
}

static bool take_answer(void *data, size_t i, const struct reply *reply)
{
    struct preparation *p = data;
    const struct zone_move *move = &p->moves.moves[i];
    if (reply->type != REPLY_INTEGER) {
        return preparation_complain(
            p, reply->type == REPLY_ERROR ? reply->text.p : "no answer of ours");
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
static bool check_moves(struct session *session, struct preparation *p, int64_t deadline_ms)
{
    struct buffer b;
    buffer_init(&b);
    zone_moves_ask(&p->moves, p->core, &b);
    bool ok =
        p->moves.n == 0 || preparation_ask(p, session, &b, p->moves.n, deadline_ms, take_answer);
    buffer_release(&b);
    return ok;
}

static bool change_settings(struct session *session, struct preparation *p, int64_t deadline_ms)
{
    struct core *core = p->core;
    struct buffer b;
    struct buffer names;
    buffer_init(&b);
    buffer_init(&names);
    for (unsigned i = 0; i < core->partitions.n; i++) {
        if (!p->changed[i].is) {
            continue;
        }
        struct key state;
        struct key sites;
        char ver[33];
        char kept[SETTINGS_TEXT];
        random_ver(ver);
        kept_print(&p->changed[i].retention, kept);
        key_fixed(&state, core->partitions.tag[i], "state", SLICE(""));
        key_fixed(&sites, core->partitions.tag[i], "sites", SLICE(""));
        buffer_clear(&names, SIZE_MAX);
        size_t n_names = zone_moves_put(&p->moves, i, &names);
        script_head(&b, &session->scripts, SCRIPT_SETTINGS, 2, 6 + n_names);
        resp_word(&b, state.p, state.n);
        resp_word(&b, sites.p, sites.n);
        resp_word(&b, p->changed[i].cfg.p, p->changed[i].cfg.n);
        resp_word(&b, p->changed[i].st.p, p->changed[i].st.n);
        resp_text(&b, core->cfg);
        resp_text(&b, kept);
        resp_text(&b, ver);
        resp_text(&b, core->sites.text);
        buffer_append(&b, names.p, names.n);
        b.failed = b.failed || names.failed;
    }
    bool ok = preparation_ask(p, session, &b, p->n_changed, deadline_ms, take_change);
    buffer_release(&names);
    buffer_release(&b);
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

bool session_prepare(struct session *session, struct core *core, struct replaced_settings *replaced,
    bool adopt, int64_t deadline_ms, char *error, size_t error_n)
{
    struct preparation *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        (void)snprintf(error, error_n, "out of memory");
        return false;
    }
    atomic_store(&core->emptied, false); /* before it is looked: what is lost later counts again */
    period_secrets_doubt(&core->period_secrets);
    p->core = core;
    p->replaced = replaced;
    p->error = error;
    p->error_n = error_n;
    p->adopt = adopt;
    (void)snprintf(
        p->meta, sizeof(p->meta), "schema=%d partitions=%u", KEY_SCHEMA, core->partitions.n);
    (void)snprintf(error, error_n, "the connection was lost while it was prepared");
    bool ok = prepare_server(p, session, deadline_ms) && learn_schema(session, p, deadline_ms) &&
              publish_secret(p) && learn_partitions(session, p, deadline_ms);
    for (int tries = 0; ok && p->n_changed > 0 && tries < 10; tries++) {
        ok = check_moves(session, p, deadline_ms) && change_settings(session, p, deadline_ms);
        forget_changes(p);
        ok = ok && learn_partitions(session, p, deadline_ms);
    }
    ok = ok && p->n_changed == 0;
    forget_changes(p);
    free(p);
    if (ok) {
        atomic_store(&core->settings_differ, false);
    }
    return ok;
}

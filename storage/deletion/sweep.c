#include "storage/deletion/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/deletion/found.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/dispatcher.h"

#define SCAN_COUNT   "1000"
#define KEYS_AT_ONCE 200 /* keys of one script, which frees sketches of 12 KB while others wait */
#define MEMBERS_MAX  500 /* fields of one key that one script takes away */

/* A step that is under way. */
struct sweep_turn {
    struct deletion_sweep *sweep;
    struct core *core;
    struct pipeline *pipe;
    const struct deletion_target *target;
    const struct sweep_order *order;
    bool is_fenced, is_unmarked;
};

void sweep_begin(struct deletion_sweep *sweep, const struct session *session)
{
    *sweep = (struct deletion_sweep){.cursor = "0"};
    sweep->changes = session->dispatcher == NULL ? 0 : session->dispatcher->links.changes;
}

/* ---- taking away ---- */

/* A call of delete.lua: the keys that are deleted come first, and those behind lose fields. */
struct delete_call {
    unsigned partition;
    size_t n_unlinked, n_plain, n_zsets;
    const char *plain; /* "HDEL" or "SREM" */
    size_t n_fields;
};

/* Begin a call; the caller appends the keys, then delete_arguments(), then the fields. */
static struct buffer *delete_begin(struct sweep_turn *step, const struct delete_call *call)
{
    const char *tag = step->core->partitions.tag[call->partition];
    size_t n_keys = 2 + call->n_unlinked + call->n_plain + call->n_zsets;
    struct buffer *out =
        pipeline_script(step->pipe, call->partition, SCRIPT_DELETE, n_keys, 5 + call->n_fields);
    key_put(out, tag, "state");
    key_put(out, tag, "pass");
    return out;
}

static void delete_arguments(
    const struct sweep_turn *step, const struct delete_call *call, struct buffer *out)
{
    resp_decimal(out, step->order->token);
    resp_text(out, step->order->id);
    resp_decimal(out, (int64_t)call->n_unlinked);
    resp_text(out, call->plain);
    resp_decimal(out, (int64_t)call->n_plain);
}

/* Send the call, and take its answer.  Deleting twice does no harm, so a lost answer leaves nothing
 * in doubt. */
static bool delete_end(struct sweep_turn *step)
{
    const struct reply *reply = pipeline_ask(step->pipe, false);
    if (reply == NULL) {
        return false;
    }
    int64_t n = reply_integer(reply, -1);
    step->is_fenced = n == -1;
    step->is_unmarked = n == -2;
    step->sweep->n_found += n > 0 ? (uint64_t)n : 0;
    return n >= 0;
}

/* Take fields [from, to) of the list out of one key. */
static bool delete_fields(struct sweep_turn *step, unsigned partition, struct slice key,
    enum found_kind kind, const char *plain, const struct found_list *fields)
{
    for (size_t from = 0; from < fields->n; from += MEMBERS_MAX) {
        size_t n = fields->n - from < MEMBERS_MAX ? fields->n - from : MEMBERS_MAX;
        const struct delete_call call = {.partition = partition,
            .n_plain = kind == FOUND_HASH,
            .n_zsets = kind == FOUND_ZSET,
            .plain = plain,
            .n_fields = n};
        struct buffer *out = delete_begin(step, &call);
        resp_slice(out, key);
        delete_arguments(step, &call, out);
        for (size_t i = from; i < from + n; i++) {
            resp_slice(out, found_get(fields, i));
        }
        if (!delete_end(step)) {
            return false;
        }
    }
    return true;
}

/* Delete keys [from, to) of the list, which are of one partition, or take the target's page out of
 * them. */
static bool delete_keys(
    struct sweep_turn *step, const struct found_list *list, size_t from, size_t to)
{
    struct delete_call call = {.partition = list->all[from].partition,
        .plain = "HDEL",
        .n_fields = step->target->page.n > 0 && !step->target->is_prefix};
    for (size_t i = from; i < to; i++) {
        call.n_unlinked += list->all[i].kind == FOUND_KEY;
        call.n_plain += list->all[i].kind == FOUND_HASH;
        call.n_zsets += list->all[i].kind == FOUND_ZSET;
    }
    struct buffer *out = delete_begin(step, &call);
    for (size_t i = from; i < to; i++) {
        resp_slice(out, found_get(list, i));
    }
    delete_arguments(step, &call, out);
    if (call.n_fields > 0) {
        resp_slice(out, step->target->page);
    }
    return delete_end(step);
}

/* ---- what a key holds ---- */

/* Send the command that scans; *cursor moves on.  NULL: see the pipeline's err. */
static const struct reply *ask_scan(struct sweep_turn *step, char cursor[static REPLY_CURSOR])
{
    const struct reply *reply = pipeline_ask(step->pipe, false);
    const struct reply *list = reply != NULL ? reply_scan(reply, cursor) : NULL;
    if (reply != NULL && list == NULL) {
        (void)pipeline_foreign(step->pipe, "what is scanned");
    }
    return list;
}

/* Look at some fields of @key, by @command (HSCAN, ZSCAN, SSCAN), and gather those that match. */
static bool scan_fields(struct sweep_turn *step, unsigned partition, struct slice key,
    const char *command, const struct buffer *pattern, char cursor[static REPLY_CURSOR],
    struct found_list *ret)
{
    struct buffer *out = pipeline_command(step->pipe, partition, command, 6);
    resp_slice(out, key);
    resp_text(out, cursor);
    resp_text(out, "MATCH");
    resp_word(out, pattern->p, pattern->n);
    resp_text(out, "COUNT");
    resp_text(out, SCAN_COUNT);
    const struct reply *list = ask_scan(step, cursor);
    size_t stride = command[0] == 'S' ? 1 : 2; /* but for SSCAN, a value follows each field */
    for (size_t i = 0; list != NULL && i < list->n; i += stride) {
        if (!found_add(ret, list->items[i].text, FOUND_NOTHING, partition)) {
            return pipeline_fail(step->pipe, STORAGE_NOMEM);
        }
    }
    return list != NULL;
}

/* Take all fields of @key that match @pattern away, by @plain, or by ZREM. */
static bool sweep_fields(struct sweep_turn *step, unsigned partition, struct slice key,
    enum found_kind kind, const char *plain, const struct buffer *pattern)
{
    const char *command = kind == FOUND_ZSET ? "ZSCAN" : plain[0] == 'H' ? "HSCAN" : "SSCAN";
    char cursor[REPLY_CURSOR] = "0";
    bool ok = !pattern->failed || pipeline_fail(step->pipe, STORAGE_NOMEM);
    do {
        struct found_list fields = {.n = 0};
        ok = ok && scan_fields(step, partition, key, command, pattern, cursor, &fields) &&
             delete_fields(step, partition, key, kind, plain, &fields);
        found_release(&fields);
    } while (ok && strcmp(cursor, "0") != 0);
    return ok;
}

/* Take all pages with the target's prefix out of one key. */
static bool sweep_prefix(struct sweep_turn *step, const struct found_list *list, size_t i)
{
    struct buffer pattern;
    buffer_init(&pattern);
    found_prefix_pattern(&pattern, step->target->page);
    bool ok = sweep_fields(
        step, list->all[i].partition, found_get(list, i), list->all[i].kind, "HDEL", &pattern);
    buffer_release(&pattern);
    return ok;
}

/* ---- keys ---- */

static bool sweep_found(struct sweep_turn *step, struct found_list *list)
{
    size_t i = 0;
    bool ok = true;
    found_sort(list);
    while (ok && i < list->n) {
        if (list->all[i].kind != FOUND_KEY && step->target->is_prefix) {
            ok = sweep_prefix(step, list, i++);
            continue;
        }
        size_t to = i + 1;
        while (to < list->n && to - i < KEYS_AT_ONCE &&
               list->all[to].partition == list->all[i].partition &&
               (list->all[to].kind == FOUND_KEY || !step->target->is_prefix)) {
            to++;
        }
        ok = delete_keys(step, list, i, to);
        i = to;
    }
    return ok;
}

/* Sweep some keys of the server that has the partition. */
static bool sweep_keys(struct sweep_turn *step)
{
    struct deletion_sweep *sweep = step->sweep;
    const struct partitions *partitions = &step->core->partitions;
    const char *tag = step->core->is_spread ? partitions->tag[sweep->partition] : NULL;
    char cursor[REPLY_CURSOR];
    struct buffer pattern;
    struct found_list list = {.n = 0};
    buffer_init(&pattern);
    key_site_pattern(&pattern, tag, step->target->site);
    struct buffer *out = pipeline_command(step->pipe, sweep->partition, "SCAN", 5);
    resp_text(out, sweep->cursor);
    resp_text(out, "MATCH");
    resp_word(out, pattern.p, pattern.n);
    resp_text(out, "COUNT");
    resp_text(out, SCAN_COUNT);
    out->failed = out->failed || pattern.failed;
    const struct reply *names = ask_scan(step, cursor);
    bool ok = names != NULL;
    for (size_t i = 0; ok && i < names->n; i++) {
        unsigned partition = 0;
        enum found_kind kind =
            found_judge(partitions, step->target, names->items[i].text, &partition);
        if (kind != FOUND_NOTHING && !found_add(&list, names->items[i].text, kind, partition)) {
            ok = pipeline_fail(step->pipe, STORAGE_NOMEM);
        }
    }
    ok = ok && sweep_found(step, &list);
    if (ok) { /* after a fault the same keys are looked at again */
        (void)snprintf(
            sweep->cursor, sizeof(sweep->cursor), "%s", strcmp(cursor, "0") == 0 ? "" : cursor);
    }
    found_release(&list);
    buffer_release(&pattern);
    return ok;
}

/* Take the site's members out of the sets that a partition has for all sites. */
static bool sweep_members(struct sweep_turn *step)
{
    static const struct {
        const char *name;
        enum found_kind kind;
    } sets[] = {{"open", FOUND_HASH}, {"gone", FOUND_HASH}, {"acts", FOUND_ZSET}};
    unsigned partition = step->sweep->partition;
    const char *tag = step->core->partitions.tag[partition];
    struct buffer pattern;
    struct key key;
    bool ok = true;
    buffer_init(&pattern);
    buffer_append(&pattern, step->target->site.p, step->target->site.n);
    buffer_text(&pattern, ":*");
    for (size_t i = 0; ok && i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct slice set = key_fixed(&key, tag, sets[i].name, SLICE(""));
        ok = sweep_fields(step, partition, set, sets[i].kind, "SREM", &pattern);
    }
    buffer_release(&pattern);
    if (ok) {
        struct found_list site = {.n = 0};
        struct slice set = key_fixed(&key, tag, "sites", SLICE(""));
        ok = found_add(&site, step->target->site, FOUND_NOTHING, partition)
                 ? delete_fields(step, partition, set, FOUND_HASH, "SREM", &site)
                 : pipeline_fail(step->pipe, STORAGE_NOMEM);
        found_release(&site);
    }
    return ok;
}

/* ---- a sweep ---- */

static void sweep_next(struct sweep_turn *step)
{
    struct deletion_sweep *sweep = step->sweep;
    sweep->partition++;
    memcpy(sweep->cursor, step->core->is_spread ? "0" : "", 2 - !step->core->is_spread);
}

enum sweep_result sweep_step(struct deletion_sweep *sweep, struct core *core, struct pipeline *p,
    const struct deletion_target *target, const struct sweep_order *order)
{
    struct sweep_turn step = {
        .sweep = sweep, .core = core, .pipe = p, .target = target, .order = order};
    const struct dispatcher *dispatcher = p->session->dispatcher;
    bool ok;
    if (dispatcher != NULL && dispatcher->links.changes != sweep->changes) {
        uint64_t n_found = sweep->n_found;
        sweep_begin(sweep, p->session); /* a cursor is good on one server alone */
        sweep->n_found = n_found + 1;
    }
    if (sweep->partition >= core->partitions.n) {
        return SWEEP_DONE;
    }
    if (sweep->cursor[0] != '\0') {
        ok = sweep_keys(&step);
    } else {
        ok = target->page.n > 0 || sweep_members(&step);
        if (ok) {
            sweep_next(&step);
        }
    }
    if (!ok) {
        return step.is_fenced ? SWEEP_FENCED : step.is_unmarked ? SWEEP_UNMARKED : SWEEP_FAULT;
    }
    return sweep->partition >= core->partitions.n ? SWEEP_DONE : SWEEP_GOES_ON;
}

/* The share of the keys before @cursor.  In the cursors of a SCAN the highest bit changes most
 * often. */
static double cursor_share(const char *cursor)
{
    uint64_t is = strtoull(cursor, NULL, 10);
    double share = 0;
    for (double bit = 0.5; is != 0; is >>= 1, bit /= 2) {
        share += (is & 1) != 0 ? bit : 0;
    }
    return share;
}

double sweep_share(const struct deletion_sweep *sweep, const struct core *core)
{
    double n = core->partitions.n;
    double keys = sweep->cursor[0] == '\0' ? 1 : cursor_share(sweep->cursor);
    if (core->is_spread) {
        return sweep->partition >= core->partitions.n ? 1 : (sweep->partition + keys) / n;
    }
    return 0.95 * keys + 0.05 * sweep->partition / n;
}

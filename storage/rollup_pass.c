#include "storage/rollup_pass.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/key.h"
#include "storage/plan_write.h"
#include "storage/rollup_list.h"

#define STEP_MS         5000 /* longest wait for one step's reply */
#define MERGE_BUDGET_US 2000
#define MERGE_PAGES     64
#define MERGE_KEYS      1000
#define EXPIRE_KEYS     1000
#define PASS_ID         34 /* letter, 32 hex digits, NUL */

struct pass {
    struct core *core;
    struct session *session;
    unsigned partition;
    const char *tag;
    const struct rollup_lease *lease;

    struct partition_view view;
    char id[PASS_ID];
    char cur[24];
    struct bucket target;
    struct bucket parts[PARTS_MAX];
    size_t n_parts;
    struct rollup_list list;
    struct buffer keys, args, out;
};

/* ---- what is due ---- */

static const char letters[LEVELS + 1] = "mhdM";

static struct bucket next_bucket(
    const struct zone *zone, const struct rollup_state *state, enum level level)
{
    return bucket_at(zone, level, state->readers_s[level]);
}

int64_t rollup_due_s(const struct zone *zone, const struct rollup_state *state)
{
    for (int level = LEVEL_MONTH; level > LEVEL_HOUR; level--) {
        if (next_bucket(zone, state, (enum level)level).end_s <= state->readers_s[level - 1]) {
            return 0; /* its parts are complete */
        }
    }
    return next_bucket(zone, state, LEVEL_HOUR).end_s + PASS_GRACE_S;
}

static bool find_due(const struct pass *pass, int64_t now_s, struct bucket *ret)
{
    const struct rollup_state *state = &pass->view.state;
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        struct bucket next = next_bucket(pass->core->zone, state, (enum level)level);
        bool due = level == LEVEL_HOUR ? next.end_s + PASS_GRACE_S <= now_s
                                       : next.end_s <= state->readers_s[level - 1];
        if (due) {
            *ret = next;
            return true;
        }
    }
    return false;
}

/* ---- steps ---- */

static enum pass_result from_list(enum list_result result)
{
    switch (result) {
    case LIST_OK:
        return PASS_DONE;
    case LIST_VOID:
        return PASS_VOID;
    case LIST_LOST:
        return PASS_LOST;
    case LIST_FAILED:
        return PASS_FAILED;
    }
    return PASS_FAILED;
}

/* Send what is in pass->out and await one reply. */
static enum pass_result ask(struct pass *pass, const struct reply **ret)
{
    bool queued = redis_queue(pass->session->redis, &pass->out);
    buffer_clear(&pass->out, 256 * 1024);
    if (!queued ||
        redis_await(pass->session->redis, monotonic_ms() + STEP_MS, ret) != REDIS_OK_STATUS) {
        return PASS_LOST;
    }
    if ((*ret)->type == REPLY_ERROR) {
        core_notice(pass->core, STORAGE_ROLLUP_FAILED, (*ret)->text.p);
        return reply_is_error(*ret, "NOSCRIPT") ? PASS_LOST : PASS_FAILED;
    }
    return PASS_DONE;
}

/* Run a script whose reply is a number; at least 1 is success. */
static enum pass_result run(
    struct pass *pass, enum script script, size_t n_keys, size_t n_args, int64_t *ret)
{
    const struct reply *reply = NULL;
    if (!pass->lease->still_mine(pass->lease->data)) {
        return PASS_VOID;
    }
    script_head(&pass->out, &pass->session->scripts, script, n_keys, n_args);
    buffer_append(&pass->out, pass->keys.p, pass->keys.n);
    buffer_append(&pass->out, pass->args.p, pass->args.n);
    pass->out.failed = pass->out.failed || pass->keys.failed || pass->args.failed;
    buffer_clear(&pass->keys, 256 * 1024);
    buffer_clear(&pass->args, 256 * 1024);
    enum pass_result result = ask(pass, &reply);
    if (result == PASS_DONE) {
        *ret = reply_integer(reply, 0);
        result = *ret >= 1 ? PASS_DONE : PASS_VOID;
    }
    return result;
}

static void put_key(struct pass *pass, const char *name)
{
    struct key key;
    key_fixed(&key, pass->tag, name, SLICE(""));
    resp_word(&pass->keys, key.p, key.n);
}

static void put_bucket_key(
    struct pass *pass, enum key_kind kind, uint32_t site, struct bucket bucket, struct slice page)
{
    struct key key;
    key_bucket(&key, pass->tag, kind, pass->list.sites[site], bucket, page);
    resp_word(&pass->keys, key.p, key.n);
}

static void put_state(struct pass *pass, const struct rollup_state *state)
{
    char text[ROLLUP_STATE_TEXT];
    resp_word(&pass->args, text, rollup_state_print(state, text));
}

static void new_id(struct pass *pass)
{
    unsigned char bytes[16];
    randombytes_buf(bytes, sizeof(bytes));
    pass->id[0] = letters[pass->target.level];
    sodium_bin2hex(pass->id + 1, sizeof(pass->id) - 1, bytes, sizeof(bytes));
}

static void cut_parts(struct pass *pass)
{
    enum level level = (enum level)(pass->target.level - 1);
    int64_t at_s = pass->target.start_s;
    for (pass->n_parts = 0; at_s < pass->target.end_s && pass->n_parts < PARTS_MAX;) {
        struct bucket part = bucket_at(pass->core->zone, level, at_s);
        pass->parts[pass->n_parts++] = part;
        at_s = part.end_s;
    }
}

static enum pass_result mark(struct pass *pass)
{
    struct rollup_state closed = pass->view.state;
    int64_t done = 0;
    closed.writers_s[pass->target.level] = pass->target.end_s;
    new_id(pass);
    put_key(pass, "rolled");
    resp_text(&pass->args, pass->core->cfg);
    put_state(pass, &pass->view.state);
    put_state(pass, &closed);
    resp_text(&pass->args, pass->id);
    resp_decimal(&pass->args, pass->lease->fencing_token);
    resp_decimal(&pass->args, pass->target.end_s);
    enum pass_result result = run(pass, SCRIPT_MARK, 1, 6, &done);
    pass->view.state = closed;
    memcpy(pass->cur, "m0", 3);
    return result;
}

/* The bucket of somebody's open pass: closing, or, past the advance, the last one closed. */
static bool find_open(struct pass *pass, struct slice id)
{
    const struct rollup_state *state = &pass->view.state;
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        if (id.n != PASS_ID - 1 || id.p[0] != letters[level]) {
            continue;
        }
        bool closing = state->writers_s[level] > state->readers_s[level];
        int64_t inside_s = closing ? state->readers_s[level] : state->readers_s[level] - 1;
        pass->target = bucket_at(pass->core->zone, (enum level)level, inside_s);
        memcpy(pass->cur, closing ? "m0" : "x0", 3);
        return true;
    }
    return false;
}

static enum pass_result take_over(struct pass *pass, struct slice theirs)
{
    char id[PASS_ID];
    int64_t done = 0;
    if (!find_open(pass, theirs)) {
        return PASS_FAILED;
    }
    memcpy(id, theirs.p, PASS_ID - 1);
    new_id(pass);
    put_key(pass, "rolled");
    resp_text(&pass->args, pass->core->cfg);
    put_state(pass, &pass->view.state);
    resp_word(&pass->args, id, PASS_ID - 1);
    resp_text(&pass->args, pass->id);
    resp_decimal(&pass->args, pass->lease->fencing_token);
    resp_text(&pass->args, pass->cur);
    return run(pass, SCRIPT_TAKEOVER, 1, 6, &done);
}

/* ---- list ---- */

static enum pass_result list(struct pass *pass, bool sites_only)
{
    struct rollup_scope scope = {.core = pass->core,
        .session = pass->session,
        .tag = pass->tag,
        .lease = pass->lease,
        .pass = pass->id,
        .cur = pass->cur,
        .target = pass->target,
        .parts = pass->parts,
        .n_parts = pass->n_parts};
    return from_list(rollup_list_make(&scope, sites_only, &pass->list));
}

/* ---- merge ---- */

static size_t put_sources(struct pass *pass, enum key_kind kind, const struct rollup_item *item)
{
    size_t n = 0;
    put_bucket_key(pass, kind, item->site, pass->target, item->page);
    for (size_t i = 0; i < pass->n_parts; i++) {
        if ((item->parts >> i & 1) != 0) {
            put_bucket_key(pass, kind, item->site, pass->parts[i], item->page);
            n++;
        }
    }
    return n;
}

/* Items from @first on that go into one chunk: of one site and kind, not too many keys. */
static size_t chunk_size(const struct pass *pass, size_t first)
{
    const struct rollup_item *items = pass->list.items;
    size_t keys = 0;
    size_t n = 0;
    while (first + n < pass->list.n_items && n < MERGE_PAGES && (n == 0 || keys < MERGE_KEYS) &&
           items[first + n].site == items[first].site &&
           items[first + n].kind == items[first].kind) {
        keys += items[first + n].kind == KEY_PV
                    ? 2 + 2 * (size_t)__builtin_popcountll(items[first + n].parts)
                    : 0;
        n++;
    }
    return n;
}

/* Number behind the letter of the cursor. */
static int64_t position(const struct pass *pass)
{
    struct reply text = {.type = REPLY_TEXT, .text = slice_of(pass->cur + 1)};
    return reply_integer(&text, 0);
}

static enum pass_result merge_chunk(struct pass *pass, size_t first, size_t n, int64_t *ret_done)
{
    const struct rollup_item *items = &pass->list.items[first];
    size_t n_keys = 3 + pass->n_parts;
    put_key(pass, "rolled");
    put_key(pass, "open");
    put_bucket_key(pass, items->kind, items->site, pass->target, SLICE(""));
    for (size_t i = 0; i < pass->n_parts; i++) {
        put_bucket_key(pass, items->kind, items->site, pass->parts[i], SLICE(""));
    }
    resp_text(&pass->args, pass->core->cfg);
    resp_text(&pass->args, pass->id);
    resp_text(&pass->args, pass->cur);
    resp_decimal(&pass->args, position(pass));
    resp_decimal(&pass->args, MERGE_BUDGET_US);
    if (pass->target.level == LEVEL_MONTH) {
        resp_text(&pass->args, "");
    } else {
        struct key member;
        key_open_member(&member, pass->list.sites[items->site],
            bucket_at(
                pass->core->zone, (enum level)(pass->target.level + 1), pass->target.start_s));
        resp_word(&pass->args, member.p, member.n);
    }
    resp_text(&pass->args, pass->target.level == LEVEL_HOUR ? "H" : "Z");
    resp_decimal(&pass->args, (int64_t)pass->n_parts);
    resp_decimal(&pass->args, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        resp_word(&pass->args, items[i].page.p, items[i].page.n);
    }
    for (size_t i = 0; i < n; i++) {
        size_t sources = 0;
        if (items[i].kind == KEY_PV) {
            sources = put_sources(pass, KEY_UV, &items[i]);
            (void)put_sources(pass, KEY_IP, &items[i]);
            n_keys += 2 + 2 * sources;
        }
        resp_decimal(&pass->args, (int64_t)sources);
        resp_decimal(&pass->args, (int64_t)sources);
    }
    return run(pass, SCRIPT_MERGE, n_keys, 9 + 3 * n, ret_done);
}

static enum pass_result merge(struct pass *pass)
{
    size_t at = 0;
    while (at < pass->list.n_items) {
        int64_t done = 0;
        enum pass_result result = merge_chunk(pass, at, chunk_size(pass, at), &done);
        if (result != PASS_DONE) {
            return result;
        }
        at += (size_t)done;
        (void)snprintf(pass->cur, sizeof(pass->cur), "m%zu", at);
    }
    return PASS_DONE;
}

static enum pass_result advance(struct pass *pass)
{
    struct rollup_state done_state = pass->view.state;
    char ver[PASS_ID + 4];
    int64_t done = 0;
    done_state.readers_s[pass->target.level] = pass->target.end_s;
    (void)snprintf(ver, sizeof(ver), "%s.a", pass->id);
    put_key(pass, "rolled");
    resp_text(&pass->args, pass->core->cfg);
    resp_text(&pass->args, pass->id);
    resp_text(&pass->args, pass->cur);
    put_state(pass, &pass->view.state);
    put_state(pass, &done_state);
    resp_text(&pass->args, ver);
    enum pass_result result = run(pass, SCRIPT_ADVANCE, 1, 6, &done);
    if (result == PASS_DONE) {
        pass->view.state = done_state;
        memcpy(pass->cur, "x0", 3);
        core_set_view(pass->core, pass->partition, &pass->view);
    }
    return result;
}

/* ---- expire ---- */

/* The chunk at hand of the last phase. */
struct expiry {
    struct pass *pass;
    size_t n_keys;   /* that get an expiry */
    size_t n_chunks; /* sent so far */
    struct buffer members;
    size_t n_members;
};

static enum pass_result send_expiries(struct expiry *e, bool last)
{
    struct pass *pass = e->pass;
    struct buffer data_keys = pass->keys;
    struct buffer times = pass->args;
    char next[24];
    int64_t done = 0;
    buffer_init(&pass->keys);
    buffer_init(&pass->args);
    (void)snprintf(next, sizeof(next), "x%zu", ++e->n_chunks);
    put_key(pass, "rolled");
    put_key(pass, "open");
    resp_text(&pass->args, pass->core->cfg);
    resp_text(&pass->args, pass->id);
    resp_text(&pass->args, pass->cur);
    resp_text(&pass->args, next);
    resp_text(&pass->args, last ? "1" : "0");
    resp_decimal(&pass->args, (int64_t)e->n_keys);
    buffer_append(&pass->keys, data_keys.p, data_keys.n);
    buffer_append(&pass->args, times.p, times.n);
    buffer_append(&pass->args, e->members.p, e->members.n);
    pass->args.failed = pass->args.failed || data_keys.failed || times.failed || e->members.failed;
    buffer_release(&data_keys);
    buffer_release(&times);
    enum pass_result result =
        run(pass, SCRIPT_EXPIRE, 2 + e->n_keys, 6 + e->n_keys + e->n_members, &done);
    memcpy(pass->cur, next, sizeof(next));
    buffer_clear(&e->members, 64 * 1024);
    e->n_keys = e->n_members = 0;
    return result;
}

static enum pass_result expire_key(
    struct expiry *e, enum key_kind kind, uint32_t site, struct bucket bucket, struct slice page)
{
    int64_t at_ms = expiry_ms(bucket.end_s, retention_keep_s(&e->pass->view.retention, bucket));
    if (at_ms == 0) {
        return PASS_DONE;
    }
    put_bucket_key(e->pass, kind, site, bucket, page);
    resp_decimal(&e->pass->args, at_ms);
    e->n_keys++;
    return e->n_keys < EXPIRE_KEYS ? PASS_DONE : send_expiries(e, false);
}

/* The parts an item is in; and the bucket itself if it is a month, which nothing comes after. */
static enum pass_result expire_item(struct expiry *e, const struct rollup_item *item)
{
    struct pass *pass = e->pass;
    enum pass_result result = PASS_DONE;
    if (item->kind != KEY_PV) {
        return result;
    }
    for (size_t i = 0; result == PASS_DONE && i <= pass->n_parts; i++) {
        bool itself = i == pass->n_parts;
        if (itself ? pass->target.level != LEVEL_MONTH : (item->parts >> i & 1) == 0) {
            continue;
        }
        struct bucket bucket = itself ? pass->target : pass->parts[i];
        result = expire_key(e, KEY_UV, item->site, bucket, item->page);
        if (result == PASS_DONE) {
            result = expire_key(e, KEY_IP, item->site, bucket, item->page);
        }
    }
    return result;
}

static enum pass_result expire_site(struct expiry *e, uint32_t site)
{
    struct pass *pass = e->pass;
    enum pass_result result = PASS_DONE;
    for (size_t i = 0; result == PASS_DONE && i <= pass->n_parts; i++) {
        bool itself = i == pass->n_parts;
        if (itself && pass->target.level != LEVEL_MONTH) {
            break;
        }
        struct bucket bucket = itself ? pass->target : pass->parts[i];
        result = expire_key(e, KEY_PV, site, bucket, SLICE(""));
        if (result == PASS_DONE) {
            result = expire_key(e, KEY_VV, site, bucket, SLICE(""));
        }
    }
    return result;
}

/* Is there anything of this pass that expires at all? */
static bool expires(const struct pass *pass)
{
    const int64_t *keep_s = pass->view.retention.keep_s;
    return keep_s[pass->target.level - 1] != KEEP_FOREVER ||
           (pass->target.level == LEVEL_MONTH && keep_s[LEVEL_MONTH] != KEEP_FOREVER) ||
           pass->view.retention.until_s[pass->target.level - 1] != 0;
}

static enum pass_result expire(struct pass *pass)
{
    struct expiry e = {.pass = pass};
    enum pass_result result = list(pass, !expires(pass));
    for (size_t i = 0; result == PASS_DONE && i < pass->list.n_items; i++) {
        result = expire_item(&e, &pass->list.items[i]);
    }
    for (uint32_t i = 0; result == PASS_DONE && i < pass->list.n_sites; i++) {
        struct key member;
        result = expires(pass) ? expire_site(&e, i) : PASS_DONE;
        key_open_member(&member, pass->list.sites[i], pass->target);
        resp_word(&e.members, member.p, member.n);
        e.n_members++;
        if (result == PASS_DONE && e.n_members >= EXPIRE_KEYS) {
            result = send_expiries(&e, false);
        }
    }
    if (result == PASS_DONE) {
        result = send_expiries(&e, true);
    }
    buffer_release(&e.members);
    return result;
}

/* ---- a pass ---- */

/* Read `rolled`; the id of an open pass is copied to @open (PASS_ID bytes), "" if there is none. */
static enum pass_result read_rolled(struct pass *pass, char *open, int64_t *ret_now_s)
{
    static const char *const fields[] = {"cfg", "st", "ver", "kept", "pass"};
    const struct reply *reply = NULL;
    struct key rolled;
    key_fixed(&rolled, pass->tag, "rolled", SLICE(""));
    resp_command(&pass->out, "TIME", NULL);
    enum pass_result result = ask(pass, &reply);
    if (result != PASS_DONE) {
        return result;
    }
    core_time_seen(pass->core, reply_time_us(reply));
    *ret_now_s = reply_time_us(reply) / 1000000;
    resp_head(&pass->out, 7);
    resp_text(&pass->out, "HMGET");
    resp_word(&pass->out, rolled.p, rolled.n);
    for (size_t i = 0; i < 5; i++) {
        resp_text(&pass->out, fields[i]);
    }
    result = ask(pass, &reply);
    if (result != PASS_DONE || reply->n != 5) {
        return result == PASS_DONE ? PASS_FAILED : result;
    }
    struct reply four = *reply;
    four.n = 4;
    if (!core_parse_rolled(pass->core, &four, &pass->view)) {
        return PASS_FAILED;
    }
    core_set_view(pass->core, pass->partition, &pass->view);
    const struct reply *theirs = &reply->items[4];
    size_t n = theirs->type == REPLY_TEXT && theirs->text.n == PASS_ID - 1 ? theirs->text.n : 0;
    memcpy(open, n == 0 ? "" : theirs->text.p, n);
    open[n] = '\0';
    return PASS_DONE;
}

static enum pass_result work(struct pass *pass)
{
    char open[PASS_ID];
    int64_t now_s = 0;
    enum pass_result result = read_rolled(pass, open, &now_s);
    if (result != PASS_DONE || !pass->view.known) {
        return result == PASS_DONE ? PASS_NOTHING : result;
    }
    if (open[0] != '\0') {
        result = take_over(pass, slice_of(open));
    } else if (find_due(pass, now_s, &pass->target)) {
        result = mark(pass);
    } else {
        return PASS_NOTHING;
    }
    cut_parts(pass);
    if (result == PASS_DONE && pass->cur[0] == 'm') {
        result = list(pass, false);
        result = result == PASS_DONE ? merge(pass) : result;
        result = result == PASS_DONE ? advance(pass) : result;
    }
    return result == PASS_DONE ? expire(pass) : result;
}

enum pass_result rollup_pass(struct core *core, struct session *session, unsigned partition,
    const struct rollup_lease *lease)
{
    struct pass pass = {.core = core,
        .session = session,
        .partition = partition,
        .tag = core->partitions.tag[partition],
        .lease = lease};
    enum pass_result result = work(&pass);
    if (result == PASS_DONE) {
        atomic_fetch_add(&core->stats.rollup_passes, 1);
    } else if (result != PASS_NOTHING) {
        atomic_fetch_add(&core->stats.rollup_failures, 1);
    }
    rollup_list_release(&pass.list);
    buffer_release(&pass.keys);
    buffer_release(&pass.args);
    buffer_release(&pass.out);
    return result;
}

#include "storage/rollup/list_make.h"

#include "storage/redis/resp.h"
#include "storage/time/write_plan.h"

#define SCAN_COUNT   1000 /* entries a SCAN step looks at */
#define SCAN_AT_ONCE 2000 /* entries in one step: 2 ms of zsets, 0.7 ms of small hashes */

/* ---- one guarded step ---- */

#define LIST_FIXED_KEYS 2 /* of list.lua: state and pass */

/* A run of list.lua under construction. */
struct list_step {
    struct buffer keys, args, out;
    size_t n_keys, n_args;
    int64_t redis_ms; /* Redis's clock at the last one */
};

static void step_release(struct list_step *step)
{
    buffer_release(&step->keys);
    buffer_release(&step->args);
    buffer_release(&step->out);
}

static void list_begin(const struct rollup_scope *scope, struct list_step *step)
{
    struct key state;
    struct key pass;
    key_fixed(&state, scope->tag, "state", SLICE(""));
    key_fixed(&pass, scope->tag, "pass", SLICE(""));
    buffer_clear(&step->keys, 64 * 1024);
    buffer_clear(&step->args, 64 * 1024);
    resp_word(&step->keys, state.p, state.n);
    resp_word(&step->keys, pass.p, pass.n);
    resp_text(&step->args, scope->core->cfg);
    resp_text(&step->args, scope->pass);
    resp_text(&step->args, scope->cur);
    step->n_keys = LIST_FIXED_KEYS;
    step->n_args = 3;
}

/* Ask for the size of a key: @what is HLEN or ZCARD. */
static void put_size(struct list_step *step, const char *what, const struct key *key)
{
    resp_word(&step->keys, key->p, key->n);
    resp_text(&step->args, what);
    step->n_keys++;
    step->n_args++;
}

/* Ask for a piece of a key: @what is SSCAN, HSCAN or ZSCAN. */
static void put_scan(
    struct list_step *step, const char *what, const struct key *key, const char *cursor)
{
    resp_word(&step->keys, key->p, key->n);
    resp_text(&step->args, what);
    resp_text(&step->args, cursor);
    resp_decimal(&step->args, SCAN_COUNT);
    step->n_keys++;
    step->n_args += 3;
}

/* Send the step; *ret has an item for each key that was put, and one more. */
static enum pass_result list_finish(
    const struct rollup_scope *scope, struct list_step *step, const struct reply **ret)
{
    script_head(&step->out, &scope->session->scripts, SCRIPT_LIST, step->n_keys, step->n_args);
    buffer_append(&step->out, step->keys.p, step->keys.n);
    buffer_append(&step->out, step->args.p, step->args.n);
    step->out.failed = step->out.failed || step->keys.failed || step->args.failed;
    enum pass_result result = leadership_ask(
        scope->leadership, scope->core, scope->session, scope->partition, &step->out, ret);
    if (result != PASS_DONE) {
        return result;
    }
    if ((*ret)->type == REPLY_INTEGER) {
        return PASS_VOID;
    }
    size_t n = step->n_keys - LIST_FIXED_KEYS;
    if ((*ret)->type != REPLY_ARRAY || (*ret)->n != n + 1) {
        return PASS_FAILED;
    }
    step->redis_ms = reply_integer(&(*ret)->items[n], 0);
    return PASS_DONE;
}

/* ---- sites ---- */

/* Is the bucket one that the pass completes? */
static bool is_due(const struct rollup_scope *scope, struct bucket bucket)
{
    return bucket.level == scope->level &&
           (bucket.end_s == scope->end_s || (scope->overdue && bucket.end_s < scope->end_s));
}

static bool parse_member(const struct core *core, struct slice member, struct slice *ret_site,
    const struct zone **ret_zone, struct bucket *ret)
{
    if (!key_open_site(member, ret_site) || ret_site->n > EVENT_SITE_MAX) {
        return false; /* none of ours */
    }
    *ret_zone = site_zones_get(&core->sites, *ret_site);
    return key_open_parse(member, *ret_zone, ret_site, ret);
}

bool rollup_open_parse(const struct core *core, struct slice member, struct bucket *ret)
{
    struct slice site;
    const struct zone *zone;
    return parse_member(core, member, &site, &zone, ret);
}

static bool take_members(
    const struct rollup_scope *scope, struct rollup_list *list, const struct reply *members)
{
    for (size_t i = 0; i < members->n; i++) {
        struct slice site;
        const struct zone *zone;
        struct bucket bucket;
        if (parse_member(scope->core, members->items[i].text, &site, &zone, &bucket) &&
            is_due(scope, bucket) && !rollup_list_add_site(list, site, zone, bucket)) {
            return false;
        }
    }
    return true;
}

static enum pass_result list_sites(
    const struct rollup_scope *scope, struct rollup_list *list, struct list_step *step)
{
    char cursor[24] = "0";
    struct key open;
    key_fixed(&open, scope->tag, "open", SLICE(""));
    do {
        const struct reply *reply = NULL;
        list_begin(scope, step);
        put_scan(step, "SSCAN", &open, cursor);
        enum pass_result result = list_finish(scope, step, &reply);
        if (result != PASS_DONE) {
            return result;
        }
        const struct reply *scan = &reply->items[0];
        if (scan->n != 2 || scan->items[0].text.n >= sizeof(cursor) ||
            !take_members(scope, list, &scan->items[1])) {
            return PASS_FAILED;
        }
        memcpy(cursor, scan->items[0].text.p, scan->items[0].text.n + 1);
    } while (strcmp(cursor, "0") != 0);
    return PASS_DONE;
}

/* ---- pages of a site ---- */

/* A site's parts of one kind, [first, end), while they are scanned.  Number n_parts is the bucket
 * itself: its pages are taken to be in the parts @gone. */
struct scan {
    uint32_t site;
    enum key_kind kind;
    size_t first, end;
    uint64_t gone;
    int64_t size[PARTS_MAX + 1];
    char cursor[PARTS_MAX + 1][24];
    bool done[PARTS_MAX + 1];
};

static struct bucket list_scanned(
    const struct rollup_list *list, const struct scan *scan, size_t part)
{
    const struct rollup_cut *cut = rollup_cut_of(list, scan->site);
    return part == cut->n_parts ? cut->target : cut->parts[part];
}

static void part_key(const struct rollup_scope *scope, const struct rollup_list *list,
    const struct scan *scan, size_t part, struct key *key)
{
    key_bucket(key, scope->tag, scan->kind, list->sites[scan->site].name,
        list_scanned(list, scan, part), SLICE(""));
}

static enum pass_result ask_sizes(const struct rollup_scope *scope, const struct rollup_list *list,
    struct scan *scan, struct list_step *step)
{
    const struct reply *reply = NULL;
    list_begin(scope, step);
    for (size_t i = scan->first; i < scan->end; i++) {
        struct key key;
        part_key(scope, list, scan, i, &key);
        put_size(step, list_scanned(list, scan, i).level == LEVEL_MINUTE ? "HLEN" : "ZCARD", &key);
    }
    enum pass_result result = list_finish(scope, step, &reply);
    for (size_t i = scan->first; result == PASS_DONE && i < scan->end; i++) {
        scan->size[i] = reply_integer(&reply->items[i - scan->first], -1);
        scan->done[i] = scan->size[i] == 0;
        if (scan->size[i] < 0) {
            return PASS_FAILED;
        }
    }
    return result;
}

/* Write scans of as many unfinished parts as are good for one step; returns how many, their
 * numbers in @which. */
static size_t write_scans(const struct rollup_scope *scope, const struct rollup_list *list,
    const struct scan *scan, struct list_step *step, size_t which[PARTS_MAX])
{
    size_t n = 0;
    int64_t entries = 0;
    list_begin(scope, step);
    for (size_t i = scan->first; i < scan->end && entries < SCAN_AT_ONCE; i++) {
        if (scan->done[i]) {
            continue;
        }
        struct key key;
        part_key(scope, list, scan, i, &key);
        put_scan(step, list_scanned(list, scan, i).level == LEVEL_MINUTE ? "HSCAN" : "ZSCAN", &key,
            scan->cursor[i]);
        entries += scan->size[i] < SCAN_COUNT ? scan->size[i] : SCAN_COUNT;
        which[n++] = i;
    }
    return n;
}

static bool take_piece(
    struct rollup_list *list, struct scan *scan, size_t part, const struct reply *piece)
{
    if (piece->n != 2 || piece->items[0].text.n >= sizeof(scan->cursor[part])) {
        return false;
    }
    const struct reply *names = &piece->items[1];
    bool whole = part == rollup_cut_of(list, scan->site)->n_parts;
    uint64_t parts = whole ? scan->gone : (uint64_t)1 << part;
    for (size_t i = 0; i + 1 < names->n; i += 2) {
        struct slice page = names->items[i].text;
        int64_t count = whole ? 0 : reply_integer(&names->items[i + 1], 0);
        if (page.n <= EVENT_PAGE_MAX && /* else none of ours */
            !rollup_list_add_item(
                list, scan->site, scan->kind, page, parts, count > 0 ? (uint64_t)count : 0)) {
            return false;
        }
    }
    memcpy(scan->cursor[part], piece->items[0].text.p, piece->items[0].text.n + 1);
    scan->done[part] = strcmp(scan->cursor[part], "0") == 0;
    return true;
}

static enum pass_result run_scan(const struct rollup_scope *scope, struct rollup_list *list,
    struct scan *scan, struct list_step *step)
{
    for (size_t i = scan->first; i < scan->end; i++) {
        memcpy(scan->cursor[i], "0", 2);
    }
    enum pass_result result = ask_sizes(scope, list, scan, step);
    while (result == PASS_DONE) {
        const struct reply *reply = NULL;
        size_t which[PARTS_MAX];
        size_t n = write_scans(scope, list, scan, step, which);
        if (n == 0) {
            return PASS_DONE;
        }
        result = list_finish(scope, step, &reply);
        for (size_t i = 0; result == PASS_DONE && i < n; i++) {
            if (!take_piece(list, scan, which[i], &reply->items[i])) {
                result = PASS_FAILED;
            }
        }
    }
    return result;
}

/* The parts (bits) of a site whose hash of views may have expired since the bucket was closed, by
 * Redis's clock at the last step. */
static uint64_t parts_gone(const struct rollup_scope *scope, const struct rollup_list *list,
    uint32_t site, int64_t redis_ms)
{
    const struct rollup_cut *cut = rollup_cut_of(list, site);
    /* What ended before and was left announced was closed by an earlier pass. */
    int64_t closed_ms = cut->target.end_s < scope->end_s ? 0 : scope->closed_ms;
    uint64_t gone = 0;
    for (size_t i = 0; scope->retention != NULL && i < cut->n_parts; i++) {
        int64_t at_ms =
            expiry_ms(cut->parts[i].end_s, retention_keep_s(scope->retention, cut->parts[i]));
        if (at_ms != 0 && at_ms > closed_ms && at_ms <= redis_ms) {
            gone |= (uint64_t)1 << i;
        }
    }
    return gone;
}

static enum pass_result list_pages(const struct rollup_scope *scope, struct rollup_list *list,
    uint32_t site, enum key_kind kind, struct list_step *step)
{
    size_t n_parts = rollup_cut_of(list, site)->n_parts;
    struct scan parts = {.site = site, .kind = kind, .end = n_parts};
    enum pass_result result = run_scan(scope, list, &parts, step);
    uint64_t gone = parts_gone(scope, list, site, step->redis_ms);
    /* A month expires itself, with what was put together in it and in no day. */
    bool itself = scope->retention != NULL && scope->level == LEVEL_MONTH;
    if (result == PASS_DONE && (gone != 0 || itself)) {
        struct scan whole = {
            .site = site, .kind = kind, .first = n_parts, .end = n_parts + 1, .gone = gone};
        result = run_scan(scope, list, &whole, step);
    }
    return result;
}

enum pass_result rollup_list_make(
    const struct rollup_scope *scope, bool sites_only, struct rollup_list *ret)
{
    struct list_step step = {0};
    rollup_list_clear(ret);
    enum pass_result result = list_sites(scope, ret, &step);
    for (size_t i = 0; !sites_only && result == PASS_DONE && i < ret->n_sites; i++) {
        result = list_pages(scope, ret, (uint32_t)i, KEY_PV, &step);
        if (result == PASS_DONE) {
            result = list_pages(scope, ret, (uint32_t)i, KEY_VV, &step);
        }
    }
    step_release(&step);
    return result;
}

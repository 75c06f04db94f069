/* list_make.c - read from Redis what a pass has to merge.
 *
 * Each step is a run of list.lua, which compares the pass's id and cursor first.  The list is void
 * as soon as another process has taken the pass over.  Sizes are asked first; then the parts are
 * scanned in pieces, so that no step holds Redis for more than about two milliseconds.
 *
 * Pages are found in a part's hash of views.  Once the bucket is closed for readers, that hash may
 * expire (a late event gives the hash its expiry), while the sketches of the part's other pages
 * have no expiry yet.  So the hash of a part may be gone by now, though it was there when the
 * bucket was closed.  Then every page of the bucket itself is taken to be in the part: what was in
 * the part when the bucket was closed is in the bucket, too.
 */
#include "storage/redis/resp.h"
#include "storage/rollup/step.h"
#include "storage/time/write_plan.h"

#define SCAN_COUNT   1000 /* entries that one scan in a step looks at */
#define SCAN_AT_ONCE 2000 /* entries in one step: 2 ms of sorted sets, 0.7 ms of small hashes */

/* ---- one guarded step ---- */

/* Arguments about a key: HLEN or ZCARD; or a command that scans, its cursor and its count. */
#define SIZE_WORDS 1
#define SCAN_WORDS 3

static void list_begin(struct pass *pass)
{
    resp_text(&pass->args, pass->id);
    resp_text(&pass->args, pass->cur);
}

/* Put the arguments that scan the key that was put: @what is SSCAN, HSCAN or ZSCAN. */
static void put_scan(struct pass *pass, const char *what, const char *cursor)
{
    resp_text(&pass->args, what);
    resp_text(&pass->args, cursor);
    resp_decimal(&pass->args, SCAN_COUNT);
}

/* Send the step, which has @n keys with @words arguments each.  *ret has an item for each key, and
 * one more: Redis's clock. */
static enum pass_result list_finish(
    struct pass *pass, size_t n, size_t words, const struct reply **ret)
{
    enum pass_result result = pass_script(pass, SCRIPT_LIST, 2 + n * words, ret);
    if (result != PASS_DONE) {
        return result;
    }
    if ((*ret)->type == REPLY_INTEGER) {
        return PASS_VOID;
    }
    if ((*ret)->type != REPLY_ARRAY || (*ret)->n != n + 1) {
        return PASS_FAILED;
    }
    pass->redis_ms = reply_integer(&(*ret)->items[n], 0);
    return PASS_DONE;
}

/* ---- sites ---- */

/* Is @bucket one that the pass completes, or, behind the advance, one that is complete already? */
static bool is_due(const struct pass *pass, struct bucket bucket)
{
    return bucket.level == pass->level &&
           (bucket.end_s == pass->end_s || (pass_is_closed(pass) && bucket.end_s < pass->end_s));
}

bool open_bucket_parse(const struct core *core, struct slice member, struct open_bucket *ret)
{
    if (!key_open_site(member, &ret->site) || ret->site.n > EVENT_SITE_MAX) {
        return false; /* tallyd has not written the member */
    }
    ret->zone = site_zones_get(&core->sites, ret->site);
    return key_open_parse(member, ret->zone, &ret->site, &ret->bucket);
}

static bool take_members(struct pass *pass, const struct reply *members)
{
    for (size_t i = 0; i < members->n; i++) {
        struct open_bucket open;
        if (open_bucket_parse(pass->core, members->items[i].text, &open) &&
            is_due(pass, open.bucket) &&
            !rollup_list_add_site(&pass->list, open.site, open.zone, open.bucket)) {
            return false;
        }
    }
    return true;
}

static enum pass_result list_sites(struct pass *pass)
{
    char cursor[REPLY_CURSOR] = "0";
    do {
        const struct reply *reply = NULL;
        list_begin(pass);
        pass_put_key(pass, "open");
        put_scan(pass, "SSCAN", cursor);
        enum pass_result result = list_finish(pass, 1, SCAN_WORDS, &reply);
        if (result != PASS_DONE) {
            return result;
        }
        const struct reply *members = reply_scan(&reply->items[0], cursor);
        if (members == NULL || !take_members(pass, members)) {
            return PASS_FAILED;
        }
    } while (strcmp(cursor, "0") != 0);
    return PASS_DONE;
}

/* ---- pages of a site ---- */

/* The scans of a site's parts [first, end), for one kind of keys.  Part number n_parts is the
 * bucket itself: its pages are taken to be in the parts @gone (bits). */
struct scan {
    uint32_t site;
    enum key_kind kind;
    size_t first, end;
    uint64_t gone;
    int64_t size[PARTS_MAX + 1];
    char cursor[PARTS_MAX + 1][REPLY_CURSOR];
    bool done[PARTS_MAX + 1];
};

static struct bucket scanned_bucket(const struct pass *pass, const struct scan *scan, size_t part)
{
    const struct rollup_cut *cut = rollup_cut_of(&pass->list, scan->site);
    return part == cut->n_parts ? cut->target : cut->parts[part];
}

/* Put the key of a part.  True: the part is a minute, whose key is a hash; else the key is a sorted
 * set. */
static bool put_part(struct pass *pass, const struct scan *scan, size_t part)
{
    struct bucket bucket = scanned_bucket(pass, scan, part);
    pass_put_bucket_key(pass, scan->kind, scan->site, bucket, SLICE(""));
    return bucket.level == LEVEL_MINUTE;
}

static enum pass_result ask_sizes(struct pass *pass, struct scan *scan)
{
    const struct reply *reply = NULL;
    list_begin(pass);
    for (size_t i = scan->first; i < scan->end; i++) {
        resp_text(&pass->args, put_part(pass, scan, i) ? "HLEN" : "ZCARD");
    }
    enum pass_result result = list_finish(pass, scan->end - scan->first, SIZE_WORDS, &reply);
    for (size_t i = scan->first; result == PASS_DONE && i < scan->end; i++) {
        scan->size[i] = reply_integer(&reply->items[i - scan->first], -1);
        scan->done[i] = scan->size[i] == 0;
        if (scan->size[i] < 0) {
            return PASS_FAILED;
        }
    }
    return result;
}

/* Write scans of as many unfinished parts as one step may look at.  Returns how many there are;
 * @which has the numbers of these parts. */
static size_t write_scans(struct pass *pass, const struct scan *scan, size_t which[PARTS_MAX])
{
    size_t n = 0;
    int64_t entries = 0;
    for (size_t i = scan->first; i < scan->end && entries < SCAN_AT_ONCE; i++) {
        if (scan->done[i]) {
            continue;
        }
        if (n == 0) {
            list_begin(pass);
        }
        put_scan(pass, put_part(pass, scan, i) ? "HSCAN" : "ZSCAN", scan->cursor[i]);
        entries += scan->size[i] < SCAN_COUNT ? scan->size[i] : SCAN_COUNT;
        which[n++] = i;
    }
    return n;
}

static bool take_piece(
    struct rollup_list *list, struct scan *scan, size_t part, const struct reply *piece)
{
    const struct reply *names = reply_scan(piece, scan->cursor[part]);
    if (names == NULL) {
        return false;
    }
    bool whole = part == rollup_cut_of(list, scan->site)->n_parts;
    uint64_t parts = whole ? scan->gone : (uint64_t)1 << part;
    for (size_t i = 0; i + 1 < names->n; i += 2) {
        struct slice page = names->items[i].text;
        int64_t count = whole ? 0 : reply_integer(&names->items[i + 1], 0);
        if (page.n <= EVENT_PAGE_MAX && /* tallyd writes no longer name */
            !rollup_list_add_item(
                list, scan->site, scan->kind, page, parts, count > 0 ? (uint64_t)count : 0)) {
            return false;
        }
    }
    scan->done[part] = strcmp(scan->cursor[part], "0") == 0;
    return true;
}

static enum pass_result run_scan(struct pass *pass, struct scan *scan)
{
    for (size_t i = scan->first; i < scan->end; i++) {
        memcpy(scan->cursor[i], "0", 2);
    }
    enum pass_result result = ask_sizes(pass, scan);
    while (result == PASS_DONE) {
        const struct reply *reply = NULL;
        size_t which[PARTS_MAX];
        size_t n = write_scans(pass, scan, which);
        if (n == 0) {
            return PASS_DONE;
        }
        result = list_finish(pass, n, SCAN_WORDS, &reply);
        for (size_t i = 0; result == PASS_DONE && i < n; i++) {
            if (!take_piece(&pass->list, scan, which[i], &reply->items[i])) {
                result = PASS_FAILED;
            }
        }
    }
    return result;
}

/* The parts (bits) of a site whose hash of views may have expired between the closing of the bucket
 * for readers and the last step, by Redis's clock. */
static uint64_t parts_gone(const struct pass *pass, uint32_t site)
{
    const struct rollup_cut *cut = rollup_cut_of(&pass->list, site);
    /* A bucket that ended earlier, and is still announced, was closed by an earlier pass. */
    int64_t closed_ms = cut->target.end_s < pass->end_s ? 0 : pass->closed_ms;
    uint64_t gone = 0;
    for (size_t i = 0; i < cut->n_parts; i++) {
        int64_t at_ms =
            expiry_ms(cut->parts[i].end_s, retention_keep_s(&pass->view.retention, cut->parts[i]));
        if (at_ms != 0 && at_ms > closed_ms && at_ms <= pass->redis_ms) {
            gone |= (uint64_t)1 << i;
        }
    }
    return gone;
}

static enum pass_result list_pages(struct pass *pass, uint32_t site, enum key_kind kind)
{
    size_t n_parts = rollup_cut_of(&pass->list, site)->n_parts;
    struct scan parts = {.site = site, .kind = kind, .end = n_parts};
    enum pass_result result = run_scan(pass, &parts);
    if (result != PASS_DONE || !pass_is_closed(pass)) {
        return result;
    }
    struct scan whole = {.site = site, .kind = kind, .first = n_parts, .end = n_parts + 1};
    whole.gone = parts_gone(pass, site);
    /* A month's own keys expire, also those of what was put together in the month and in no day. */
    return whole.gone != 0 || pass->level == LEVEL_MONTH ? run_scan(pass, &whole) : PASS_DONE;
}

enum pass_result pass_list(struct pass *pass, bool sites_only)
{
    rollup_list_clear(&pass->list);
    enum pass_result result = list_sites(pass);
    for (uint32_t i = 0; !sites_only && result == PASS_DONE && i < pass->list.n_sites; i++) {
        result = list_pages(pass, i, KEY_PV);
        if (result == PASS_DONE) {
            result = list_pages(pass, i, KEY_VV);
        }
    }
    return result;
}

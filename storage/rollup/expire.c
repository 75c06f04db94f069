/* expire.c - the last phase of a pass: give the keys that were rolled up their expiry. */
#include "storage/rollup/step.h"

#include <stdio.h>

#include "storage/redis/resp.h"
#include "storage/time/write_plan.h"

#define EXPIRE_KEYS 1000 /* keys, or members of `open`, in one chunk */

/* The chunk at hand of the last phase. */
struct expiry {
    struct pass *pass;
    size_t n_keys;                /* keys in the chunk that get an expiry */
    size_t n_chunks;              /* chunks that were sent so far */
    struct buffer times, members; /* when each key expires; what is taken out of `open` */
    size_t n_members;
};

/* Send the chunk, and begin the next one unless this is the @last. */
static enum pass_result send_expiries(struct expiry *e, bool last)
{
    struct pass *pass = e->pass;
    struct buffer *args = &pass->args;
    char next[24];
    int64_t done = 0;
    (void)snprintf(next, sizeof(next), "x%zu", ++e->n_chunks);
    resp_text(args, pass->id);
    resp_text(args, pass->cur);
    resp_decimal(args, pass->leadership->fencing_token);
    resp_text(args, next);
    resp_text(args, last ? "1" : "0");
    resp_decimal(args, (int64_t)e->n_keys);
    buffer_append(args, e->times.p, e->times.n);
    buffer_append(args, e->members.p, e->members.n);
    args->failed = args->failed || e->times.failed || e->members.failed;
    enum pass_result result = pass_run(pass, SCRIPT_EXPIRE, 6 + e->n_keys + e->n_members, &done);
    memcpy(pass->cur, next, sizeof(next));
    buffer_clear(&e->times, 64 * 1024);
    buffer_clear(&e->members, 64 * 1024);
    e->n_keys = e->n_members = 0;
    if (!last) {
        pass_put_key(pass, "open");
    }
    return result;
}

static enum pass_result expire_key(
    struct expiry *e, enum key_kind kind, uint32_t site, struct bucket bucket, struct slice page)
{
    int64_t at_ms = expiry_ms(bucket.end_s, retention_keep_s(&e->pass->view.retention, bucket));
    if (at_ms == 0) {
        return PASS_DONE;
    }
    pass_put_bucket_key(e->pass, kind, site, bucket, page);
    resp_decimal(&e->times, at_ms);
    e->n_keys++;
    return e->n_keys < EXPIRE_KEYS ? PASS_DONE : send_expiries(e, false);
}

/* Give the keys of @page of two kinds their expiry, in @parts (bits) of the site's bucket.  If the
 * bucket is a month, its own keys get an expiry, too, because no later pass comes to them. */
static enum pass_result expire_page(struct expiry *e, uint32_t site, const enum key_kind kinds[2],
    struct slice page, uint64_t parts)
{
    const struct rollup_cut *cut = rollup_cut_of(&e->pass->list, site);
    enum pass_result result = PASS_DONE;
    for (size_t i = 0; result == PASS_DONE && i <= cut->n_parts; i++) {
        bool itself = i == cut->n_parts;
        bool expires = itself ? cut->target.level == LEVEL_MONTH : (parts >> i & 1) != 0;
        struct bucket bucket = itself ? cut->target : cut->parts[i];
        for (size_t k = 0; expires && result == PASS_DONE && k < 2; k++) {
            result = expire_key(e, kinds[k], site, bucket, page);
        }
    }
    return result;
}

/* Give the sketches of an item their expiry. */
static enum pass_result expire_item(struct expiry *e, const struct rollup_item *item)
{
    static const enum key_kind sketches[2] = {KEY_UV, KEY_IP};
    return item->kind == KEY_PV ? expire_page(e, item->site, sketches, item->page, item->parts)
                                : PASS_DONE;
}

/* Give the tables of a site their expiry: one key of a bucket has all pages. */
static enum pass_result expire_site(struct expiry *e, uint32_t site)
{
    static const enum key_kind tables[2] = {KEY_PV, KEY_VV};
    return expire_page(e, site, tables, SLICE(""), UINT64_MAX);
}

/* Does anything of this pass expire at all? */
static bool expires(const struct pass *pass)
{
    const int64_t *keep_s = pass->view.retention.keep_s;
    return keep_s[pass->level - 1] != KEEP_FOREVER ||
           (pass->level == LEVEL_MONTH && keep_s[LEVEL_MONTH] != KEEP_FOREVER) ||
           pass->view.retention.until_s[pass->level - 1] != 0;
}

enum pass_result pass_expire(struct pass *pass)
{
    struct expiry e = {.pass = pass};
    enum pass_result result = pass_list(pass, !expires(pass));
    pass_put_key(pass, "open");
    for (size_t i = 0; result == PASS_DONE && i < pass->list.n_items; i++) {
        result = expire_item(&e, &pass->list.items[i]);
    }
    for (uint32_t i = 0; result == PASS_DONE && i < pass->list.n_sites; i++) {
        struct key member;
        result = expires(pass) ? expire_site(&e, i) : PASS_DONE;
        resp_slice(&e.members, key_open_member(&member, pass->list.sites[i].name,
                                   rollup_cut_of(&pass->list, i)->target));
        e.n_members++;
        if (result == PASS_DONE && e.n_members >= EXPIRE_KEYS) {
            result = send_expiries(&e, false);
        }
    }
    if (result == PASS_DONE) {
        result = send_expiries(&e, true);
    }
    buffer_release(&e.times);
    buffer_release(&e.members);
    return result;
}

#include "storage/users/forget.h"

#include <stdlib.h>

#include "storage/base/arena.h"
#include "storage/base/clock.h"
#include "storage/redis/resp.h"
#include "storage/redis/script.h"
#include "storage/users/user_change.h"

#define BITMAPS_AT_ONCE 500   /* bitmaps that one script takes away: 1 ms of Redis */
#define SCAN_COUNT      "500" /* members of `acts` of one ZSCAN, whose bitmaps one script clears */
#define SWEEP_MS        5000
#define LEFT_MAX        1000 /* indices of `gone` that are cleared in one go */

/* ---- clearing an index's bits ---- */

struct clearing {
    struct activity *activity;
    unsigned partition;
    const char *tag;
    struct slice member; /* of gone: <site>:<index> */
    struct slice site, index;
    uint64_t bits;
};

/* Take a member of `gone` apart: "<site>:<index>". */
static bool parse_gone(struct slice member, struct slice *ret_site, struct slice *ret_index)
{
    *ret_index = member;
    return slice_take_until(ret_index, ':', ret_site);
}

/* Clear the index's bits in @n bitmaps of the site, whose keys are @keys.  @last: they were the
 * last, and the index leaves `gone`.  An index that stays in `gone` is cleared again by the next
 * job, so a script without an answer leaves no doubt to be told of.  An index that has left `gone`
 * keeps its bits: the site was deleted meanwhile, and its indices began anew. */
static bool clear_some(struct clearing *c, const struct buffer *keys, size_t n, bool last)
{
    struct pipeline *p = &c->activity->pipe;
    uint64_t bits = 0;
    pipeline_stay(p, last); /* a replica that has taken over may lack what was cleared */
    struct buffer *out = pipeline_script(p, c->partition, SCRIPT_CLEAR_BITS, 1 + n, 3);
    key_put(out, c->tag, "gone");
    buffer_append(out, keys->p, keys->n);
    out->failed = out->failed || keys->failed;
    resp_slice(out, c->index);
    resp_slice(out, c->member);
    resp_text(out, last ? "1" : "");
    if (!pipeline_send(p, false) || !pipeline_number(p, &bits)) {
        return false;
    }
    pipeline_stay(p, false);
    c->bits += bits;
    return true;
}

static const struct reply *ask_scan(struct clearing *c, const char *cursor)
{
    struct buffer *out = pipeline_command(&c->activity->pipe, c->partition, "ZSCAN", 4);
    key_put(out, c->tag, "acts");
    resp_text(out, cursor);
    resp_text(out, "COUNT");
    resp_text(out, SCAN_COUNT);
    return pipeline_ask(&c->activity->pipe, false);
}

/* Append the keys of the site's bitmaps among the members @list (member, score, member, ..).
 * Returns how many they are. */
static size_t put_keys(const struct clearing *c, const struct reply *list, struct buffer *keys)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < list->n; i += 2) {
        struct slice member = list->items[i].text;
        struct slice rest;
        struct key key;
        key_activity_prefix(&key, c->tag);
        if (!key_member_of(member, c->site, &rest) || member.n > sizeof(key.p) - key.n) {
            continue;
        }
        memcpy(key.p + key.n, member.p, member.n);
        resp_word(keys, key.p, key.n + member.n);
        n++;
    }
    return n;
}

/* Clear the index's bits in the bitmaps that one reply of ZSCAN names: about as many as were asked
 * for.  The reply's cursor is copied to @cursor. */
static bool scan_step(struct clearing *c, char cursor[static REPLY_CURSOR])
{
    struct buffer keys;
    const struct reply *reply = ask_scan(c, cursor);
    if (reply == NULL) {
        return false;
    }
    const struct reply *members = reply_scan(reply, cursor);
    if (members == NULL) {
        return pipeline_foreign(&c->activity->pipe, "a list of bitmaps");
    }
    buffer_init(&keys);
    size_t n = put_keys(c, members, &keys);
    bool ok = n == 0 || clear_some(c, &keys, n, false);
    buffer_release(&keys);
    return ok;
}

/* Clear the index's bits in all bitmaps of its site.  Bitmaps that are made meanwhile cannot have
 * such a bit. */
static bool clear_index(struct clearing *c)
{
    char cursor[REPLY_CURSOR] = "0";
    struct buffer none;
    do {
        if (!scan_step(c, cursor)) {
            return false;
        }
    } while (strcmp(cursor, "0") != 0);
    buffer_init(&none);
    return clear_some(c, &none, 0, true);
}

/* Copy members of `gone` into @arena and @ret; at most LEFT_MAX. */
static bool read_gone(
    struct activity *a, unsigned partition, struct arena *arena, struct slice *ret, size_t *ret_n)
{
    struct buffer *out = pipeline_command(&a->pipe, partition, "SRANDMEMBER", 2);
    key_put(out, a->core->partitions.tag[partition], "gone");
    resp_decimal(out, LEFT_MAX);
    const struct reply *reply = pipeline_ask(&a->pipe, false);
    *ret_n = 0;
    if (reply == NULL) {
        return false;
    }
    for (size_t i = 0; i < reply->n && *ret_n < LEFT_MAX; i++) {
        ret[*ret_n] = reply->items[i].text;
        if (!arena_copy(arena, &ret[(*ret_n)++])) {
            return pipeline_fail(&a->pipe, STORAGE_NOMEM);
        }
    }
    return true;
}

/* Clear the bits of the index that @member of `gone` names; *ret_bits grows by them. */
static bool clear_member(
    struct activity *a, unsigned partition, struct slice member, uint64_t *ret_bits)
{
    const char *tag = a->core->partitions.tag[partition];
    struct clearing c = {.activity = a, .partition = partition, .tag = tag, .member = member};
    bool ok = !parse_gone(member, &c.site, &c.index) || clear_index(&c);
    *ret_bits += c.bits;
    return ok;
}

/* Clear the bits of all indices of @partition that stand in `gone`. */
static bool clear_gone(struct activity *a, unsigned partition)
{
    struct arena arena = {0};
    struct slice left[LEFT_MAX] = {0};
    size_t n = 0;
    uint64_t ignored = 0;
    bool ok = read_gone(a, partition, &arena, left, &n);
    for (size_t i = 0; ok && i < n; i++) {
        ok = clear_member(a, partition, left[i], &ignored);
    }
    arena_release(&arena);
    return ok;
}

/* ---- forgetting ---- */

#define NOBODY (-1) /* forget_user.lua's answer in place of the index that the user had */

static enum storage_err forget_in_partition(struct reader *reader, struct storage_job *job,
    unsigned partition, int64_t *ret_index, bool *ret_lost)
{
    struct forget_user_job *user = &job->u.forget_user;
    const char *tag = reader->core->partitions.tag[partition];
    struct key keys[2];
    key_user_ids(&keys[0], tag, user->site);
    key_fixed(&keys[1], tag, "gone", SLICE(""));
    const struct user_change change = {
        .script = SCRIPT_FORGET_USER,
        .site = user->site,
        .user = user->user,
        .partition = partition,
        .keys = keys,
        .n_keys = 2,
    };
    enum storage_err err = user_change_run(reader, job, &change, ret_index, ret_lost);
    /* The answer to a later try says nothing of a try that was lost. */
    user->sent = user->sent || err == STORAGE_UNKNOWN || *ret_index >= 0;
    return err;
}

enum storage_err forget_user_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct forget_user_job *user = &job->u.forget_user;
    unsigned partition = 0;
    int64_t index = NOBODY;
    struct activity a;
    enum storage_err err = activity_partition(reader->core, user->site, user->user, &partition);
    if (err == STORAGE_OK) {
        err = forget_in_partition(reader, job, partition, &index, ret_lost);
    }
    if (err != STORAGE_OK) {
        return err;
    }
    char text[EVENT_SITE_MAX + 24];
    size_t n = user->site.n + 1;
    memcpy(text, user->site.p, user->site.n);
    text[user->site.n] = ':';
    n += decimal_print(index, text + n);
    user->known = user->known || index >= 0;
    activity_begin(&a, reader->core, &reader->session, job->deadline_ms);
    /* This user first: others may be more than there is time for, or than are read at once. */
    (void)((index < 0 || clear_member(&a, partition, (struct slice){text, n}, &user->bits)) &&
           clear_gone(&a, partition));
    err = pipeline_answer(&a.pipe, job, ret_lost);
    return err == STORAGE_OK ? user_change_tell(reader, job, ret_lost) : err;
}

/* ---- days that are kept no more ---- */

static bool sweep_partition(struct activity *a, unsigned partition, int64_t before_day)
{
    const char *tag = a->core->partitions.tag[partition];
    int64_t n = BITMAPS_AT_ONCE;
    while (n == BITMAPS_AT_ONCE) {
        struct key key;
        struct buffer *out = pipeline_script(&a->pipe, partition, SCRIPT_SWEEP_DAYS, 3, 3);
        key_put(out, tag, "state");
        key_put(out, tag, "acts");
        resp_slice(out, key_activity_prefix(&key, tag));
        resp_text(out, a->core->cfg);
        resp_decimal(out, before_day);
        resp_decimal(out, BITMAPS_AT_ONCE);
        const struct reply *reply = pipeline_ask(&a->pipe, false);
        if (reply == NULL) {
            return false;
        }
        n = reply_integer(reply, -1);
    }
    return true;
}

bool activity_sweep(struct core *core, struct session *session, unsigned partition)
{
    struct activity a;
    bool lost = false;
    int64_t now_s = redis_clock_ms(&core->clock) / 1000;
    /* A day later than is needed: then the day is over in every zone. */
    int64_t before_day = activity_oldest_day(core, zone_utc(), now_s) - 1;
    activity_begin(&a, core, session, monotonic_ms() + SWEEP_MS);
    if (before_day <= 0 || sweep_partition(&a, partition, before_day)) {
        (void)clear_gone(&a, partition);
    }
    (void)pipeline_end(&a.pipe, &lost); /* the rest is done an hour later */
    return !lost;
}

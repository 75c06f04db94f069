#include "storage/users/forget.h"

#include <sodium.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/redis/resp.h"
#include "storage/redis/script.h"
#include "storage/users/bitmaps.h"

#define BITMAPS_AT_ONCE 500   /* cleared or taken away: 1 ms */
#define SCAN_COUNT      "500" /* of members of `acts` */
#define SWEEP_MS        5000
#define LEFT_MAX        1000 /* indices finished in one go */

/* ---- clearing an index's bits ---- */

struct clearing {
    struct talk *talk;
    const char *tag;
    struct slice member; /* of gone: <site>:<index> */
    struct slice site, index;
    uint64_t bits;
};

/* "<site>:<index>" */
static bool parse_gone(struct slice member, struct slice *ret_site, struct slice *ret_index)
{
    const char *colon = member.n == 0 ? NULL : memchr(member.p, ':', member.n);
    if (colon == NULL) {
        return false;
    }
    *ret_site = (struct slice){member.p, (size_t)(colon - member.p)};
    return key_member_of(member, *ret_site, ret_index);
}

/* @keys: @n bitmaps of the site.  @last: it is done. */
static enum storage_err clear_some(
    struct clearing *c, const struct buffer *keys, size_t n, bool last)
{
    struct talk *talk = c->talk;
    struct key gone;
    uint64_t bits = 0;
    script_head(&talk->out, &talk->reader->session.scripts, SCRIPT_CLEAR_BITS, 1 + n, 2);
    key_fixed(&gone, c->tag, "gone", SLICE(""));
    resp_word(&talk->out, gone.p, gone.n);
    buffer_append(&talk->out, keys->p, keys->n);
    talk->out.failed = talk->out.failed || keys->failed;
    resp_word(&talk->out, c->index.p, c->index.n);
    resp_word(&talk->out, c->member.p, last ? c->member.n : 0);
    enum storage_err err = talk_send(talk) ? talk_number(talk, &bits) : STORAGE_NOMEM;
    c->bits += bits;
    return err;
}

static void ask_scan(struct clearing *c, struct slice cursor)
{
    struct key acts;
    key_fixed(&acts, c->tag, "acts", SLICE(""));
    resp_head(&c->talk->out, 5);
    resp_text(&c->talk->out, "ZSCAN");
    resp_word(&c->talk->out, acts.p, acts.n);
    resp_word(&c->talk->out, cursor.p, cursor.n);
    resp_text(&c->talk->out, "COUNT");
    resp_text(&c->talk->out, SCAN_COUNT);
}

/* Bitmaps of the site among the members @list (member, score, member, ..), as keys. */
static size_t keys_of(
    const struct clearing *c, const struct reply *list, size_t *from, struct buffer *keys)
{
    size_t n = 0;
    for (; *from + 1 < list->n && n < BITMAPS_AT_ONCE; *from += 2) {
        struct slice member = list->items[*from].text;
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

/* One reply of ZSCAN: its cursor is copied to @cursor; its members' bitmaps are gathered, all of
 * them, before the next command ends the reply's life. */
static enum storage_err scan_step(struct clearing *c, char cursor[static 24], size_t *cursor_n)
{
    const struct reply *reply = NULL;
    struct buffer chunks[8];
    size_t sizes[8];
    size_t n_chunks = 0;
    size_t from = 0;
    ask_scan(c, (struct slice){cursor, *cursor_n});
    enum storage_err err = talk_send(c->talk) ? talk_next(c->talk, &reply) : STORAGE_NOMEM;
    if (err != STORAGE_OK) {
        return err;
    }
    if (reply->type != REPLY_ARRAY || reply->n != 2 || reply->items[0].text.n > 23) {
        return talk_foreign(c->talk);
    }
    *cursor_n = reply->items[0].text.n;
    memcpy(cursor, reply->items[0].text.p, *cursor_n);
    const struct reply *list = &reply->items[1];
    while (from + 1 < list->n && n_chunks < 8) {
        buffer_init(&chunks[n_chunks]);
        sizes[n_chunks] = keys_of(c, list, &from, &chunks[n_chunks]);
        n_chunks++;
    }
    if (from + 1 < list->n) { /* far more than was asked for: not a zset of ours */
        err = talk_foreign(c->talk);
    }
    for (size_t i = 0; i < n_chunks; i++) {
        if (err == STORAGE_OK && sizes[i] > 0) {
            err = clear_some(c, &chunks[i], sizes[i], false);
        }
        buffer_release(&chunks[i]);
    }
    return err;
}

/* Clear the index's bits in all bitmaps of its site.  Those that are made meanwhile cannot have
 * one. */
static enum storage_err clear_index(struct clearing *c)
{
    char cursor[24] = "0";
    size_t cursor_n = 1;
    struct buffer none;
    enum storage_err err;
    do {
        err = scan_step(c, cursor, &cursor_n);
    } while (err == STORAGE_OK && !(cursor_n == 1 && cursor[0] == '0'));
    buffer_init(&none);
    return err == STORAGE_OK ? clear_some(c, &none, 0, true) : err;
}

/* All of @partition that stands in gone.  *ret_bits: cleared bits of @own (member of gone). */
static enum storage_err clear_gone(
    struct talk *talk, unsigned partition, struct slice own, uint64_t *ret_bits)
{
    const struct reply *reply = NULL;
    const char *tag = talk->reader->core->partitions.tag[partition];
    struct arena arena = {0};
    struct slice left[LEFT_MAX];
    size_t n = 0;
    struct key gone;
    key_fixed(&gone, tag, "gone", SLICE(""));
    resp_head(&talk->out, 3);
    resp_text(&talk->out, "SRANDMEMBER");
    resp_word(&talk->out, gone.p, gone.n);
    resp_decimal(&talk->out, LEFT_MAX);
    enum storage_err err = talk_send(talk) ? talk_next(talk, &reply) : STORAGE_NOMEM;
    for (size_t i = 0; err == STORAGE_OK && i < reply->n && n < LEFT_MAX; i++) {
        struct slice member = reply->items[i].text;
        char *copy = arena_alloc(&arena, member.n + 1);
        if (copy == NULL) {
            err = STORAGE_NOMEM;
            break;
        }
        memcpy(copy, member.p, member.n);
        left[n++] = (struct slice){copy, member.n};
    }
    for (size_t i = 0; err == STORAGE_OK && i < n; i++) {
        struct clearing c = {.talk = talk, .tag = tag, .member = left[i]};
        if (parse_gone(left[i], &c.site, &c.index)) {
            err = clear_index(&c);
            *ret_bits += slice_equal(left[i], own) ? c.bits : 0;
        }
    }
    arena_release(&arena);
    return err;
}

/* ---- forgetting ---- */

static enum storage_err forget(
    struct talk *talk, struct forget_user_job *job, unsigned partition, int64_t *ret_index)
{
    struct core *core = talk->reader->core;
    const struct reply *reply = NULL;
    const char *tag = core->partitions.tag[partition];
    unsigned char bytes[16];
    char generation[33];
    struct key key;
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(generation, sizeof(generation), bytes, sizeof(bytes));
    script_head(&talk->out, &talk->reader->session.scripts, SCRIPT_FORGET_USER, 4, 4);
    key_fixed(&key, tag, "rolled", SLICE(""));
    resp_word(&talk->out, key.p, key.n);
    key_user_index(&key, tag, job->site);
    resp_word(&talk->out, key.p, key.n);
    key_user_ids(&key, tag, job->site);
    resp_word(&talk->out, key.p, key.n);
    key_fixed(&key, tag, "gone", SLICE(""));
    resp_word(&talk->out, key.p, key.n);
    resp_text(&talk->out, core->cfg);
    resp_word(&talk->out, job->user.p, job->user.n);
    resp_word(&talk->out, job->site.p, job->site.n);
    resp_text(&talk->out, generation);
    bool before = job->sent; /* and lost: what this one is told says nothing of it */
    job->sent = true;
    enum storage_err err = talk_send(talk) ? talk_next(talk, &reply) : STORAGE_NOMEM;
    if (err == STORAGE_OK) {
        *ret_index = reply_integer(reply, -2);
        err = *ret_index == -2 ? STORAGE_CONFIG : STORAGE_OK;
    }
    if (err == STORAGE_OK ? *ret_index < 0 : reply != NULL) { /* nobody known, or refused */
        job->sent = before;
    }
    return err;
}

enum storage_err forget_user_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct forget_user_job *user = &job->u.forget_user;
    unsigned partition = 0;
    int64_t index = -1;
    struct talk talk;
    enum storage_err err = activity_partition(reader->core, user->site, user->user, &partition);
    if (err != STORAGE_OK) {
        return err;
    }
    talk_begin(&talk, reader, job, ret_lost);
    err = forget(&talk, user, partition, &index);
    if (err == STORAGE_OK) {
        char text[EVENT_SITE_MAX + 24];
        size_t n = user->site.n + 1;
        memcpy(text, user->site.p, user->site.n);
        text[user->site.n] = ':';
        n += decimal_print(index < 0 ? 0 : index, text + n);
        user->known = user->known || index >= 0;
        err = clear_gone(&talk, partition, (struct slice){text, index < 0 ? 0 : n}, &user->bits);
    }
    talk_end(&talk);
    return err;
}

/* ---- days that are kept no more ---- */

static enum storage_err sweep_partition(struct talk *talk, unsigned partition, int64_t before_day)
{
    const struct core *core = talk->reader->core;
    const char *tag = core->partitions.tag[partition];
    enum storage_err err = STORAGE_OK;
    int64_t n = BITMAPS_AT_ONCE;
    while (err == STORAGE_OK && n == BITMAPS_AT_ONCE) {
        const struct reply *reply = NULL;
        struct key key;
        script_head(&talk->out, &talk->reader->session.scripts, SCRIPT_SWEEP_DAYS, 3, 3);
        key_fixed(&key, tag, "rolled", SLICE(""));
        resp_word(&talk->out, key.p, key.n);
        key_fixed(&key, tag, "acts", SLICE(""));
        resp_word(&talk->out, key.p, key.n);
        key_activity_prefix(&key, tag);
        resp_word(&talk->out, key.p, key.n);
        resp_text(&talk->out, core->cfg);
        resp_decimal(&talk->out, before_day);
        resp_decimal(&talk->out, BITMAPS_AT_ONCE);
        err = talk_send(talk) ? talk_next(talk, &reply) : STORAGE_NOMEM;
        n = err == STORAGE_OK ? reply_integer(reply, -1) : -1;
    }
    return err;
}

bool activity_sweep(struct core *core, struct session *session)
{
    struct storage_job job = {.deadline_ms = monotonic_ms() + SWEEP_MS};
    struct reader reader = {.core = core, .session = *session};
    enum storage_err err = STORAGE_OK;
    bool lost = false;
    struct talk talk;
    int64_t now_s = redis_clock_ms(&core->clock) / 1000;
    /* A day later than is needed: then the day is over in every zone. */
    int64_t before_day = activity_oldest_day(core, zone_utc(), now_s) - 1;
    talk_begin(&talk, &reader, &job, &lost);
    for (unsigned p = 0; err == STORAGE_OK && p < core->partitions.n; p++) {
        uint64_t ignored = 0;
        err = before_day > 0 ? sweep_partition(&talk, p, before_day) : STORAGE_OK;
        err = err == STORAGE_OK ? clear_gone(&talk, p, SLICE(""), &ignored) : err;
    }
    talk_end(&talk);
    return !lost;
}

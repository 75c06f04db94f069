#include "storage/read/proved_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/read/listed_keys.h"
#include "storage/read/plan.h"
#include "storage/redis/resp.h"

bool window_begin(struct window_read *w, struct reader *reader, struct storage_job *job,
    struct window_question *asked, bool *ret_lost)
{
    *w = (struct window_read){
        .core = reader->core,
        .session = &reader->session,
        .job = job,
        .asked = asked,
        .ret_lost = ret_lost,
        .zone = site_zones_get(&reader->core->sites, asked->site), /* where its buckets are cut */
        .window = asked->window,
        .covers = calloc(PARTITIONS_MAX, sizeof(*w->covers)),
        .known = calloc(PARTITIONS_MAX, sizeof(*w->known)),
    };
    for (size_t i = 0; w->covers != NULL && i < PARTITIONS_MAX; i++) {
        cover_init(&w->covers[i]);
    }
    buffer_init(&w->out);
    buffer_init(&w->keys);
    buffer_init(&w->args);
    return w->covers != NULL && w->known != NULL;
}

static enum storage_err await_piece(struct window_read *w, const struct window_piece *piece,
    const struct reply **ret, bool *ret_full);

/* Read and drop replies that nobody has taken. */
static void drain(struct window_read *w)
{
    const struct reply *reply = NULL;
    bool full = false;
    while (!*w->ret_lost && w->next < w->n_pieces) {
        (void)await_piece(w, &w->pieces[w->next++], &reply, &full);
    }
    w->next = w->n_pieces = 0;
}

void window_end(struct window_read *w)
{
    drain(w);
    free(w->pieces);
    for (size_t i = 0; w->covers != NULL && i < PARTITIONS_MAX; i++) {
        cover_release(&w->covers[i]);
    }
    free(w->covers);
    free(w->known);
    buffer_release(&w->out);
    buffer_release(&w->keys);
    buffer_release(&w->args);
}

/* ---- planning ---- */

static enum storage_err plan_all(
    struct window_read *w, uint64_t partitions, struct window window, int64_t now_s)
{
    size_t buckets = 0;
    for (unsigned p = 0; p < w->core->partitions.n; p++) {
        if ((partitions >> p & 1) == 0) {
            continue;
        }
        w->known[p] = (struct partition_known){.view = core_view(w->core, p)};
        struct cover_basis basis = plan_basis(w->zone, &w->known[p].view, now_s);
        enum storage_err err = plan_error(cover_plan(&basis, window, BUCKETS_MAX, &w->covers[p]));
        if (err != STORAGE_OK) {
            return err;
        }
        buckets += w->covers[p].n;
    }
    size_t most = w->asked->explain ? COUNTED_KEYS_MAX : WINDOW_READS_MAX;
    return buckets > most ? STORAGE_TOO_BROAD : STORAGE_OK;
}

enum storage_err window_plan(struct window_read *w, uint64_t partitions)
{
    int64_t now_s = redis_clock_ms(&w->core->clock) / 1000;
    struct window outer = w->window;
    enum storage_err err = plan_all(w, partitions, w->window, now_s);
    drain(w);
    w->stale = false;
    w->asked->answered = w->window;
    if (err != STORAGE_NOT_KEPT) {
        return err;
    }
    if (!plan_widen(w->core, w->zone, partitions, now_s, &outer)) {
        w->asked->answered = (struct window){w->window.from_s, w->window.from_s};
        return err;
    }
    w->asked->answered = outer;
    return w->asked->round_outer ? plan_all(w, partitions, outer, now_s) : err;
}

bool window_moved_on(struct window_read *w)
{
    int64_t minute_end_s = bucket_at(zone_utc(), LEVEL_MINUTE, w->latest_s).end_s;
    if (!w->asked->to_is_now || minute_end_s <= w->window.to_s) {
        return false;
    }
    w->window.to_s = minute_end_s;
    return true;
}

/* ---- asking ---- */

bool window_piece_begin(struct window_read *w, unsigned partition, size_t first, size_t n)
{
    const char *tag = w->core->partitions.tag[partition];
    if (w->next == w->n_pieces) {
        w->next = w->n_pieces = 0;
    }
    if (!array_reserve(&w->pieces, &w->pieces_capacity, w->n_pieces, sizeof(*w->pieces))) {
        w->out.failed = true;
        return false;
    }
    w->pieces[w->n_pieces++] =
        (struct window_piece){.partition = partition, .first = first, .n = n, .by_script = w->full};
    w->n_args = 0;
    if (w->full) {
        struct key rolled;
        key_fixed(&rolled, tag, "rolled", SLICE(""));
        buffer_clear(&w->keys, 64 * 1024);
        buffer_clear(&w->args, 64 * 1024);
        resp_word(&w->keys, rolled.p, rolled.n);
        return true;
    }
    resp_command(&w->out, "MULTI", NULL);
    rolled_ask(&w->out, tag, 0);
    return true;
}

/* What stands behind the key. */
static void put_arguments(struct buffer *to, const char *argument, const char *count)
{
    if (argument != NULL) {
        resp_text(to, argument);
    }
    if (count != NULL) {
        resp_text(to, "COUNT");
        resp_text(to, count);
    }
}

void window_piece_put(struct window_read *w, const char *command, const struct key *key,
    const char *argument, const char *count)
{
    size_t words = 1u + (argument != NULL) + (count != NULL) * 2u; /* without the key */
    w->pieces[w->n_pieces - 1].n_commands++;
    if (w->full) {
        resp_word(&w->keys, key->p, key->n);
        resp_decimal(&w->args, (int64_t)words);
        resp_text(&w->args, command);
        put_arguments(&w->args, argument, count);
        w->n_args += words + 1;
        return;
    }
    resp_head(&w->out, words + 1);
    resp_text(&w->out, command);
    resp_word(&w->out, key->p, key->n);
    put_arguments(&w->out, argument, count);
}

void window_piece_end(struct window_read *w)
{
    if (!w->full) {
        resp_command(&w->out, "TIME", NULL);
        resp_command(&w->out, "EXEC", NULL);
        return;
    }
    script_head(&w->out, &w->session->scripts, SCRIPT_READ_ANY,
        1 + w->pieces[w->n_pieces - 1].n_commands, w->n_args);
    buffer_append(&w->out, w->keys.p, w->keys.n);
    buffer_append(&w->out, w->args.p, w->args.n);
    w->out.failed = w->out.failed || w->keys.failed || w->args.failed;
}

bool window_send(struct window_read *w)
{
    bool ok = w->out.n == 0 || redis_queue(w->session->redis, &w->out);
    bool left = true;
    if (ok && w->out.n > 0) { /* what can go goes now; who awaits the answer sees what failed */
        (void)redis_send(w->session->redis, &left);
    }
    buffer_clear(&w->out, 256 * 1024);
    *w->ret_lost = *w->ret_lost || !ok;
    return ok;
}

/* ---- taking answers ---- */

enum storage_err window_foreign(struct window_read *w)
{
    (void)snprintf(w->job->detail, sizeof(w->job->detail), "a counter holds foreign data");
    return STORAGE_REFUSED;
}

static enum storage_err refuse(struct window_read *w, const struct reply *reply)
{
    reader_op_detail(w->job, reply);
    bool away = reply_is_error(reply, "LOADING") || reply_is_error(reply, "MASTERDOWN");
    *w->ret_lost = *w->ret_lost || reply_is_error(reply, "NOSCRIPT");
    return away || *w->ret_lost ? STORAGE_DOWN : STORAGE_REFUSED;
}

/* All replies to a piece; *ret is the one with the data. */
static enum storage_err await_piece(struct window_read *w, const struct window_piece *piece,
    const struct reply **ret, bool *ret_full)
{
    /* MULTI, HMGET, .., TIME queued, then EXEC */
    size_t replies = piece->by_script ? 1 : piece->n_commands + 4;
    do {
        enum redis_status status = redis_await(w->session->redis, w->job->deadline_ms, ret);
        if (status != REDIS_OK_STATUS) {
            *w->ret_lost = true;
            return status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN;
        }
        *ret_full = *ret_full || (!piece->by_script && reply_is_error(*ret, "OOM"));
    } while (--replies > 0);
    return STORAGE_OK;
}

static bool holds(const struct window_read *w, const struct window_piece *piece,
    const struct partition_view *view)
{
    struct cover_basis basis = plan_basis(w->zone, view, w->latest_s);
    for (size_t i = piece->first; i < piece->first + piece->n; i++) {
        if (!cover_legal(&basis, w->covers[piece->partition].buckets[i])) {
            return false;
        }
    }
    return true;
}

bool window_may_recall(const struct window_read *w, unsigned partition)
{
    return w->core->cache != NULL && !w->full && !w->forgetful && w->known[partition].view.known;
}

void window_recalled(struct window_read *w, unsigned partition, enum proof proof)
{
    struct partition_known *known = &w->known[partition];
    known->unproved |= known->seen ? 0 : 1u << proof;
}

/* What was recalled of the partition, does it hold?  From now on by @view. */
static bool proves(struct partition_known *known, const struct partition_view *view)
{
    if (!closed_same(known->unproved, &known->view, view)) {
        return false;
    }
    for (unsigned proof = PROOF_VER; known->seen && proof <= PROOF_OVER; proof++) {
        known->changed |= closed_same(1u << proof, &known->view, view) ? 0 : 1u << proof;
    }
    *known = (struct partition_known){.view = *view, .seen = true, .changed = known->changed};
    return true;
}

/* The reply to a piece: is it one, and does the plan hold by it?  *ret_items: see window_take. */
static enum storage_err judge(struct window_read *w, const struct window_piece *piece,
    const struct reply *reply, const struct reply **ret_items)
{
    struct partition_view view;
    if (reply->type == REPLY_ERROR) {
        return refuse(w, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n != piece->n_commands + 2) {
        return window_foreign(w);
    }
    if (!core_parse_rolled(w->core, &reply->items[0], &view)) {
        return STORAGE_CONFIG;
    }
    int64_t time_us = reply_time_us(&reply->items[reply->n - 1]);
    core_time_seen(w->core, time_us);
    w->latest_s = time_us / 1000000;
    core_set_view(w->core, piece->partition, &view);
    if ((view.known && !holds(w, piece, &view)) || !proves(&w->known[piece->partition], &view)) {
        w->stale = true;
        return STORAGE_OK;
    }
    for (size_t i = 0; i < piece->n_commands; i++) {
        if (reply->items[1 + i].type == REPLY_ERROR) {
            return refuse(w, &reply->items[1 + i]);
        }
    }
    *ret_items = reply->items + 1;
    return STORAGE_OK;
}

enum storage_err window_take(
    struct window_read *w, const struct reply **ret_items, struct window_piece *ret_piece)
{
    const struct window_piece *piece = &w->pieces[w->next++];
    const struct reply *reply = NULL;
    bool full = false;
    *ret_items = NULL;
    if (ret_piece != NULL) {
        *ret_piece = *piece;
    }
    enum storage_err err = await_piece(w, piece, &reply, &full);
    if (err != STORAGE_OK) {
        return err;
    }
    if (full) { /* all again, by script */
        w->full = true;
        w->stale = true;
        return STORAGE_OK;
    }
    return judge(w, piece, reply, ret_items);
}

/* ---- what was read ---- */

enum storage_err window_count_key(struct window_read *w, unsigned partition, enum key_kind kind,
    struct slice page, struct bucket bucket)
{
    struct window_question *asked = w->asked;
    const struct slice *pages = &page;
    struct counted_keys counted = {.per_level = asked->per_level,
        .keys = asked->explain ? &asked->keys : NULL,
        .n = &asked->n_keys,
        .page_bytes = &w->page_bytes,
        .now_s = redis_clock_ms(&w->core->clock) / 1000};
    struct counted_bucket what = {.tag = w->core->partitions.tag[partition],
        .kind = kind,
        .site = asked->site,
        .pages = &pages,
        .n_pages = 1,
        .bucket = bucket};
    return counted_keys_add(&counted, &what);
}

void window_clear_keys(struct window_read *w)
{
    counted_keys_release(&w->asked->keys, &w->asked->n_keys);
    memset(w->asked->per_level, 0, sizeof(w->asked->per_level));
    w->page_bytes = 0;
}

void window_sort_keys(struct window_question *asked)
{
    counted_keys_sort(asked->keys, asked->n_keys);
}

#include "storage/read/proved_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/index.h"
#include "storage/core/dispatcher.h"
#include "storage/core/reply_fault.h"
#include "storage/read/plan.h"
#include "storage/redis/resp.h"
#include "storage/redis/script.h"

#define RECALLS  2 /* attempts; where late events come faster than that, all is read */
#define OUT_KEPT (256 * 1024)

static void drain_pieces(struct proved_read *r);

/* ---- a question ---- */

static bool reserve_partitions(struct proved_read *r)
{
    size_t n = r->core->partitions.n;
    if (r->known == NULL) {
        r->known = calloc(n, sizeof(*r->known));
    }
    if (r->covers == NULL) {
        r->covers = calloc(n, sizeof(*r->covers));
        for (size_t i = 0; r->covers != NULL && i < n; i++) {
            cover_init(&r->covers[i]);
        }
    }
    return r->known != NULL && r->covers != NULL;
}

bool proved_begin(struct proved_read *r, struct reader *reader, struct storage_job *job,
    struct window_question *asked, bool *ret_lost)
{
    r->core = reader->core;
    r->session = &reader->session;
    r->job = job;
    r->asked = asked;
    r->ret_lost = ret_lost;
    r->zone = site_zones_get(&reader->core->sites, asked->site);
    r->window = asked->window;
    r->stale = r->forgetful = r->full = false;
    r->page_bytes = 0;
    return reserve_partitions(r);
}

void proved_end(struct proved_read *r)
{
    drain_pieces(r);
}

void proved_release(struct proved_read *r)
{
    free(r->pieces);
    for (size_t i = 0; r->covers != NULL && i < r->core->partitions.n; i++) {
        cover_release(&r->covers[i]);
    }
    free(r->covers);
    free(r->known);
    buffer_release(&r->out);
    buffer_release(&r->keys);
    buffer_release(&r->args);
}

static int64_t minute_end_s(const struct proved_read *r)
{
    return bucket_at(zone_utc(), LEVEL_MINUTE, r->first_s).end_s;
}

static bool is_behind(const struct proved_read *r)
{
    return r->asked->to_is_now && minute_end_s(r) > r->window.to_s;
}

bool proved_holds(const struct proved_read *r)
{
    return !r->stale && !is_behind(r);
}

enum storage_err proved_attempts(struct proved_read *r, proved_attempt_fn *attempt, void *data)
{
    for (unsigned tries = 0; monotonic_ms() < r->job->deadline_ms; tries++) {
        drain_pieces(r);
        r->stale = r->scans = false;
        r->changes = r->session->dispatcher != NULL ? r->session->dispatcher->changes : 0;
        r->forgetful = tries >= RECALLS;
        r->now_s = redis_clock_ms(&r->core->clock) / 1000;
        /* of several servers one has the clock, which was read when the question was settled */
        r->first_s = r->core->is_spread ? r->now_s : 0;
        enum storage_err err = attempt(data);
        if (err != STORAGE_OK || proved_holds(r)) {
            return err;
        }
        r->window.to_s = is_behind(r) ? minute_end_s(r) : r->window.to_s;
        atomic_fetch_add(&r->core->stats.query_replans, 1);
    }
    return STORAGE_LATE; /* rollups moved on faster than we could read */
}

/* ---- planning ---- */

const struct partition_view *proved_view(struct proved_read *r, unsigned partition)
{
    r->known[partition] = (struct proved_partition){.view = core_view(r->core, partition)};
    return &r->known[partition].view;
}

/* ---- asking ---- */

bool proved_piece(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_runs *runs, size_t first)
{
    const char *tag = r->core->partitions.tag[partition];
    if (r->next == r->n_pieces) {
        r->next = r->n_pieces = r->n_sent = 0;
    }
    if (!array_reserve(&r->pieces, &r->pieces_capacity, r->n_pieces, sizeof(*r->pieces))) {
        return false;
    }
    r->pieces[r->n_pieces++] = (struct proved_piece){.partition = partition,
        .cover = cover,
        .runs = runs,
        .first = first,
        .by_script = r->full,
        .at = r->out.n};
    if (!r->full) {
        r->keys_to = r->args_to = &r->out;
        resp_command(&r->out, "MULTI", NULL);
        partition_state_ask(&r->out, tag, 0);
        return true;
    }
    struct key state;
    key_fixed(&state, tag, "state", SLICE(""));
    buffer_clear(&r->keys, OUT_KEPT);
    buffer_clear(&r->args, OUT_KEPT);
    r->keys_to = &r->keys;
    r->args_to = &r->args;
    r->n_keys = 1;
    r->n_args = 0;
    resp_word(&r->keys, state.p, state.n);
    return true;
}

void proved_command(struct proved_read *r, const char *command, size_t n_keys, size_t n_words)
{
    r->pieces[r->n_pieces - 1].n_commands++;
    r->scans = r->scans || strstr(command, "SCAN") != NULL;
    if (!r->full) {
        resp_head(&r->out, 1 + n_keys + n_words);
    } else {
        resp_decimal(&r->args, (int64_t)n_keys);
        resp_decimal(&r->args, (int64_t)n_words);
        r->n_keys += n_keys;
        r->n_args += 3 + n_words;
    }
    resp_text(r->args_to, command);
}

void proved_key(struct proved_read *r, const struct key *key)
{
    resp_word(r->keys_to, key->p, key->n);
}

void proved_word(struct proved_read *r, struct slice word)
{
    resp_word(r->args_to, word.p, word.n);
}

void proved_piece_end(struct proved_read *r, size_t n)
{
    r->pieces[r->n_pieces - 1].n = n;
    if (!r->full) {
        resp_command(&r->out, "TIME", NULL);
        resp_command(&r->out, "EXEC", NULL);
        return;
    }
    script_head(&r->out, &r->session->scripts, SCRIPT_READ, r->n_keys, r->n_args);
    buffer_append(&r->out, r->keys.p, r->keys.n);
    buffer_append(&r->out, r->args.p, r->args.n);
    r->out.failed = r->out.failed || r->keys.failed || r->args.failed;
}

/* How many replies a piece has: MULTI, HMGET, .., TIME queued, then EXEC. */
static size_t n_replies(const struct proved_piece *piece)
{
    return piece->by_script ? 1 : piece->n_commands + 4;
}

/* Send each piece to the server of its partition.  False: out of memory. */
static bool dispatch_pieces(struct proved_read *r, struct dispatcher *dispatcher)
{
    bool ok = !r->out.failed;
    for (size_t i = r->n_sent; ok && i < r->n_pieces; i++) {
        const struct proved_piece *piece = &r->pieces[i];
        size_t end = i + 1 < r->n_pieces ? r->pieces[i + 1].at : r->out.n;
        struct buffer *out = dispatcher_begin(
            dispatcher, piece->partition, piece->by_script ? DISPATCH_SINGLE : DISPATCH_MULTI);
        buffer_append(out, r->out.p + piece->at, end - piece->at);
        ok = dispatcher_end(dispatcher, n_replies(piece));
    }
    if (ok) {
        dispatcher_send(dispatcher, r->job->deadline_ms);
    }
    return ok;
}

/* What can go goes now; proved_take() sees what failed.  False: out of memory. */
static bool send_pieces(struct proved_read *r)
{
    bool left = true;
    if (r->session->dispatcher != NULL) {
        return dispatch_pieces(r, r->session->dispatcher);
    }
    bool ok = redis_queue(r->session->redis, &r->out);
    if (ok) {
        (void)redis_send(r->session->redis, &left);
    }
    return ok;
}

bool proved_send(struct proved_read *r)
{
    bool ok = r->out.n == 0 || send_pieces(r);
    buffer_clear(&r->out, OUT_KEPT);
    r->n_sent = r->n_pieces;
    *r->ret_lost = *r->ret_lost || !ok;
    return ok;
}

/* ---- taking answers ---- */

enum storage_err proved_foreign(struct proved_read *r)
{
    (void)snprintf(r->job->detail, sizeof(r->job->detail), "a counter holds foreign data");
    return STORAGE_REFUSED;
}

/* An error reply, whose words the job gets. */
static enum storage_err refuse_piece(struct proved_read *r, const struct reply *reply)
{
    (void)snprintf(
        r->job->detail, sizeof(r->job->detail), "%.*s", (int)reply->text.n, reply->text.p);
    return reply_err(reply, r->ret_lost);
}

/* All replies to a piece; *ret is the one with the data. */
static enum storage_err await_piece(struct proved_read *r, const struct proved_piece *piece,
    const struct reply **ret, bool *ret_full)
{
    struct dispatcher *dispatcher = r->session->dispatcher;
    size_t replies = dispatcher != NULL ? 1 : n_replies(piece); /* it hands out EXEC's alone */
    do {
        enum redis_status status = dispatcher != NULL
                                       ? dispatcher_await(dispatcher, r->job->deadline_ms, ret)
                                       : redis_await(r->session->redis, r->job->deadline_ms, ret);
        if (status != REDIS_OK_STATUS) {
            *r->ret_lost = true;
            return status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN;
        }
        *ret_full = *ret_full || (!piece->by_script && reply_is_error(*ret, "OOM"));
    } while (--replies > 0);
    return STORAGE_OK;
}

/* Read and drop replies that nobody has taken, and forget what was not sent. */
static void drain_pieces(struct proved_read *r)
{
    const struct reply *reply = NULL;
    bool full = false;
    while (!*r->ret_lost && r->next < r->n_sent) {
        (void)await_piece(r, &r->pieces[r->next++], &reply, &full);
    }
    r->next = r->n_pieces = r->n_sent = 0;
    buffer_clear(&r->out, OUT_KEPT);
    if (r->session->dispatcher != NULL) {
        dispatcher_forget(r->session->dispatcher);
    }
}

/* Are all buckets of the piece legal by what it brought?  Those that are recalled are if their
 * proofs hold. */
static bool piece_is_legal(const struct proved_read *r, const struct proved_piece *piece,
    const struct partition_view *view, int64_t now_s)
{
    static const struct remembered_runs none = {0};
    const struct remembered_runs *runs = piece->runs != NULL ? piece->runs : &none;
    struct cover_basis basis = plan_basis(r->zone, view, now_s);
    size_t end = piece->first + piece->n;
    for (size_t i = runs_next_unread(runs, piece->first); i < end;
         i = runs_next_unread(runs, i + 1)) {
        if (!cover_legal(&basis, piece->cover->buckets[i])) {
            return false;
        }
    }
    return true;
}

/* What was recalled of the partition, does it hold?  From now on by @view. */
static bool proves_recalled(struct proved_partition *known, const struct partition_view *view)
{
    if (!proofs_same(known->unproved, &known->view, view)) {
        return false;
    }
    for (unsigned proof = PROOF_VER; known->seen && proof <= PROOF_OVER; proof++) {
        known->changed |= proofs_same(1u << proof, &known->view, view) ? 0 : 1u << proof;
    }
    known->view = *view;
    known->seen = true;
    known->unproved = 0;
    return true;
}

/* The reply to a piece: is it one, and does the plan hold by it?  *ret_items: see proved_take. */
static enum storage_err judge_piece(struct proved_read *r, const struct proved_piece *piece,
    const struct reply *reply, const struct reply **ret_items)
{
    struct partition_view view;
    if (reply->type == REPLY_ERROR) {
        return refuse_piece(r, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n != piece->n_commands + 2) {
        return proved_foreign(r);
    }
    if (reply->items[0].type == REPLY_ARRAY && reply->items[0].n == STATE_FIELDS &&
        core_state_lost(r->core, piece->partition, &reply->items[0])) {
        (void)core_lost_text(r->core, r->job->detail);
        return STORAGE_DOWN;
    }
    if (!core_parse_state(r->core, &reply->items[0], &view)) {
        return reply->items[0].type == REPLY_ARRAY && reply->items[0].n > 0
                   ? core_other_settings(r->core, reply->items[0].items[0].text)
                   : STORAGE_CONFIG;
    }
    int64_t time_us = reply_time_us(&reply->items[reply->n - 1]);
    int64_t now_s = time_us / 1000000;
    core_time_of(r->core, piece->partition, time_us);
    r->first_s = r->first_s == 0 ? now_s : r->first_s;
    core_set_view(r->core, piece->partition, &view);
    if ((view.known && !piece_is_legal(r, piece, &view, now_s)) ||
        !proves_recalled(&r->known[piece->partition], &view)) {
        r->stale = true;
        return STORAGE_OK;
    }
    for (size_t i = 0; i < piece->n_commands; i++) {
        if (reply->items[1 + i].type == REPLY_ERROR) {
            return refuse_piece(r, &reply->items[1 + i]);
        }
    }
    *ret_items = reply->items + 1;
    return STORAGE_OK;
}

enum storage_err proved_take(
    struct proved_read *r, const struct reply **ret_items, struct proved_piece *ret_piece)
{
    const struct proved_piece *piece = &r->pieces[r->next++];
    const struct reply *reply = NULL;
    bool full = false;
    *ret_items = NULL;
    if (ret_piece != NULL) {
        *ret_piece = *piece;
    }
    enum storage_err err = await_piece(r, piece, &reply, &full);
    if (err != STORAGE_OK) {
        return err;
    }
    if (r->scans && r->session->dispatcher != NULL &&
        r->session->dispatcher->changes != r->changes) {
        r->stale = true; /* a cursor may be another server's: all is planned and read again */
        return STORAGE_OK;
    }
    if (full) { /* all again, by script */
        r->full = true;
        r->stale = true;
        return STORAGE_OK;
    }
    return judge_piece(r, piece, reply, ret_items);
}

/* ---- remembering ---- */

bool proved_may_recall(const struct proved_read *r, unsigned partition)
{
    return r->core->cache != NULL && !r->full && !r->forgetful && r->known[partition].view.known;
}

void proved_rely(struct proved_read *r, unsigned partition, enum proof proof)
{
    struct proved_partition *known = &r->known[partition];
    known->unproved |= known->seen ? 0 : 1u << proof;
}

bool proved_recall(struct proved_read *r, unsigned partition, const struct remembered_run *run,
    const struct cache_id *id, void (*use)(void *data, const void *value, size_t n), void *data)
{
    const struct partition_view *view = &r->known[partition].view;
    bool found = proof_is_steady(view, run->proof) &&
                 cache_get(r->core->cache, id, proof_ver(view, run->proof), use, data);
    if (found) {
        proved_rely(r, partition, run->proof);
    }
    atomic_fetch_add(found ? &r->core->stats.cache_hits : &r->core->stats.cache_misses, 1);
    return found;
}

bool proved_keep(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_run *run, const struct cache_id *id, const void *value, size_t n)
{
    const struct proved_partition *known = &r->known[partition];
    if ((known->changed >> run->proof & 1) != 0 || !run_holds(run, r->zone, &known->view, cover)) {
        return false;
    }
    cache_put(r->core->cache, id, proof_ver(&known->view, run->proof), value, n);
    return true;
}

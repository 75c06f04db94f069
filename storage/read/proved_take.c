/* proved_take.c - the replies to the pieces of a proved reading, and what follows from them. */
#include <stdio.h>

#include "storage/read/judge.h"
#include "storage/read/plan.h"
#include "storage/read/proved_state.h"
#include "storage/session/dispatcher.h"
#include "storage/session/reply_fault.h"

enum storage_err proved_foreign(struct proved_read *r)
{
    (void)snprintf(r->job->detail, sizeof(r->job->detail), "a counter holds foreign data");
    return STORAGE_REFUSED;
}

/* Take an error reply: the job's detail gets its words. */
static enum storage_err refuse_piece(struct proved_read *r, const struct reply *reply)
{
    (void)snprintf(
        r->job->detail, sizeof(r->job->detail), "%.*s", (int)reply->text.n, reply->text.p);
    return reply_err(reply, r->ret_lost);
}

/* Await the reply to a piece over the one connection.  For a MULTI that is the reply to EXEC, or
 * the first error, which says more than EXEC's.  The dispatcher does the same. */
static enum redis_status await_here(
    struct proved_read *r, const struct proved_piece *piece, const struct reply **ret)
{
    const size_t n = proved_n_replies(piece);
    enum redis_status status = redis_await_all(r->session->redis, n, r->job->deadline_ms, ret);
    if (status != REDIS_OK_STATUS || piece->kind == PIECE_PLAIN) {
        return status;
    }
    const struct reply *all = (*ret)->items;
    size_t i = 0;
    while (i + 1 < n && all[i].type != REPLY_ERROR) {
        i++;
    }
    *ret = &all[i];
    return status;
}

/* Await all replies to a piece.  *ret is the one with the data, and *ret_full is true if Redis's
 * memory is full, so that the MULTI was refused. */
static enum storage_err await_piece(struct proved_read *r, const struct proved_piece *piece,
    const struct reply **ret, bool *ret_full)
{
    enum redis_status status =
        r->session->dispatcher != NULL
            ? dispatcher_await(r->session->dispatcher, r->job->deadline_ms, ret)
            : await_here(r, piece, ret);
    *ret_full =
        status == REDIS_OK_STATUS && piece->kind == PIECE_MULTI && reply_is_error(*ret, "OOM");
    if (status != REDIS_OK_STATUS) {
        *r->ret_lost = true;
        return status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN;
    }
    return STORAGE_OK;
}

void proved_drain(struct proved_read *r)
{
    const struct reply *reply = NULL;
    bool full = false;
    while (!*r->ret_lost && r->next < r->n_sent) {
        (void)await_piece(r, &r->pieces[r->next++], &reply, &full);
    }
    r->next = r->n_pieces = r->n_sent = 0;
    buffer_clear(&r->out, PROVED_OUT_KEPT);
    if (r->session->dispatcher != NULL) {
        dispatcher_forget(r->session->dispatcher);
    }
}

/* Learn the state that a piece has brought. */
static enum storage_err learn_state(struct proved_read *r, const struct proved_piece *piece,
    const struct reply *state, struct partition_view *ret)
{
    enum storage_err err = core_learn_state(r->core, piece->partition, state, ret);
    if (err == STORAGE_STATE_LOST) {
        (void)core_lost_text(r->core, r->job->detail);
    }
    return err;
}

/* Does the plan hold by @reply, which has state, data and time of one moment?  If not, the reading
 * is stale. */
static enum storage_err judge_moment(
    struct proved_read *r, const struct proved_piece *piece, const struct reply *reply)
{
    struct partition_view view;
    enum storage_err err = learn_state(r, piece, &reply->items[0], &view);
    if (err != STORAGE_OK) {
        return err;
    }
    int64_t time_us = reply_time_us(&reply->items[reply->n - 1]);
    int64_t now_s = time_us / 1000000;
    core_time_of(r->core, piece->partition, time_us);
    r->first_s = r->first_s == 0 ? now_s : r->first_s;
    r->stale = r->stale || clock_leapt(r->now_s, r->first_s) ||
               (view.known &&
                   !piece_is_legal(r->zone, piece, &view, now_s, core_latest_s(r->core, now_s))) ||
               !piece_proves_recalled(&r->known[piece->partition], &view, false);
    return STORAGE_OK;
}

/* Which ids of the partition, a set of bits 1 << enum proof, are others now than when @piece was
 * planned? */
static unsigned ids_moved(const struct proved_piece *piece, const struct partition_view *view)
{
    unsigned moved = 0;
    for (unsigned proof = PROOF_VER; proof < N_PROOFS; proof++) {
        moved |= ver_hash(proof_ver(view, proof)) != piece->planned[proof] ? 1u << proof : 0;
    }
    return moved;
}

/* Does the plan hold by @proof, the ids behind the data of a plain piece?  If the partition has
 * another state now, the next attempt reads the state, and recalls nothing by the old id.
 *
 * With several servers an earlier piece may be carried out later than this one.  So the reply to
 * the earlier piece may be newer than the data of this one, and only the ids of the plan count. */
static void judge_plain(
    struct proved_read *r, const struct proved_piece *piece, const struct reply *proof)
{
    struct proved_partition *known = &r->known[piece->partition];
    const struct partition_view *before = &known->view;
    struct partition_view view;
    bool is_held = before->over_held && before->fold_held &&
                   r->begun_ms - before->seen_ms < FOLD_STEADY_MS / 2;
    unsigned moved = ids_moved(piece, before);
    bool is_planned = (moved >> PROOF_VER & 1) == 0;
    known->changed |= moved;
    if (is_planned && is_held && partition_proof_same(proof, before)) {
        known->seen = true; /* as a rule the ids are the same, and nothing is to be learnt */
        known->unproved = 0;
        return;
    }
    if (is_planned && partition_proof_take(proof, before, &view)) {
        core_set_view(r->core, piece->partition, &view);
        bool is_later = core_latest_s(r->core, r->now_s) > r->latest_s;
        r->stale = is_later || !piece_proves_recalled(known, &view, true);
        return;
    }
    if (is_planned) {
        core_forget_ver(r->core, piece->partition, &before->ver);
    }
    r->careful = r->stale = true;
}

/* Is @reply a reply to @piece, and does the plan hold by it?  *ret_items: see proved_take(). */
static enum storage_err judge_piece(struct proved_read *r, const struct proved_piece *piece,
    const struct reply *reply, const struct reply **ret_items)
{
    enum storage_err err = STORAGE_OK;
    bool was_stale = r->stale;
    bool is_plain = piece->kind == PIECE_PLAIN;
    if (reply->type == REPLY_ERROR) {
        return refuse_piece(r, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n != piece->n_commands + (is_plain ? 1 : 2)) {
        return proved_foreign(r);
    }
    r->stale = false;
    if (is_plain) {
        judge_plain(r, piece, &reply->items[reply->n - 1]);
    } else {
        err = judge_moment(r, piece, reply);
    }
    const struct reply *items = reply->items + (is_plain ? 0 : 1);
    bool holds = !r->stale;
    r->stale = r->stale || was_stale;
    for (size_t i = 0; holds && err == STORAGE_OK && i < piece->n_commands; i++) {
        if (items[i].type == REPLY_ERROR) {
            err = refuse_piece(r, &items[i]);
        }
    }
    *ret_items = holds && err == STORAGE_OK ? items : NULL;
    return err;
}

static enum storage_err take_piece(
    struct proved_read *r, const struct proved_piece *piece, const struct reply **ret_items)
{
    const struct reply *reply = NULL;
    bool full = false;
    enum storage_err err = await_piece(r, piece, &reply, &full);
    if (err != STORAGE_OK) {
        return err;
    }
    if (r->scans && r->session->dispatcher != NULL &&
        r->session->dispatcher->links.changes != r->changes) {
        r->stale = true; /* a cursor may be of another server: everything is read again */
        return STORAGE_OK;
    }
    if (full) { /* everything is read again, by scripts */
        r->full = true;
        r->stale = true;
        return STORAGE_OK;
    }
    return judge_piece(r, piece, reply, ret_items);
}

enum storage_err proved_take(
    struct proved_read *r, const struct reply **ret_items, struct proved_piece *ret_piece)
{
    const struct proved_piece *piece = &r->pieces[r->next++];
    *ret_items = NULL;
    if (ret_piece != NULL) {
        *ret_piece = *piece;
    }
    enum storage_err err = take_piece(r, piece, ret_items);
    if (*ret_items == NULL) { /* the rest of a run that the piece is in must not be remembered */
        r->known[piece->partition].changed = ~0u;
    }
    return err;
}

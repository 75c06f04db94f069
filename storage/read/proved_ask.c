/* proved_ask.c - the pieces of a proved reading: written and sent. */
#include "storage/read/proved_state.h"

#include <string.h>

#include "storage/base/index.h"
#include "storage/read/judge.h"
#include "storage/redis/resp.h"
#include "storage/redis/script.h"
#include "storage/session/dispatcher.h"

/* Add a piece, at first one of a MULTI or a script.  NULL: no memory. */
static struct proved_piece *new_piece(struct proved_read *r, unsigned partition,
    const struct cover *cover, const struct remembered_runs *runs, size_t first)
{
    if (r->next == r->n_pieces) {
        r->next = r->n_pieces = r->n_sent = 0;
    }
    if (!ARRAY_RESERVE(r, pieces)) {
        return NULL;
    }
    struct proved_piece *piece = &r->pieces[r->n_pieces++];
    *piece = (struct proved_piece){.partition = partition,
        .cover = cover,
        .runs = runs,
        .first = first,
        .kind = r->full ? PIECE_SCRIPT : PIECE_MULTI,
        .at = r->out.n};
    return piece;
}

static void begin_piece(struct proved_read *r, const struct proved_piece *piece)
{
    const char *tag = r->core->partitions.tag[piece->partition];
    r->keys_to = r->args_to = &r->out;
    r->has_time = r->has_time || piece->kind != PIECE_PLAIN;
    switch (piece->kind) {
    case PIECE_MULTI:
        resp_command(&r->out, "MULTI", NULL);
        partition_state_ask(&r->out, tag, 0);
        return;
    case PIECE_SCRIPT:
        buffer_clear(&r->keys, PROVED_OUT_KEPT);
        buffer_clear(&r->args, PROVED_OUT_KEPT);
        r->keys_to = &r->keys;
        r->args_to = &r->args;
        r->n_keys = 1;
        r->n_args = 0;
        key_put(&r->keys, tag, "state");
        return;
    case PIECE_PLAIN:
        return;
    }
}

bool proved_piece(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_runs *runs, size_t first)
{
    const struct proved_piece *piece = new_piece(r, partition, cover, runs, first);
    if (piece != NULL) {
        begin_piece(r, piece);
    }
    return piece != NULL;
}

/* Make @piece a plain one, if it may be one. */
static void make_plain(const struct proved_read *r, struct proved_piece *piece)
{
    const struct partition_view *view = &r->known[piece->partition].view;
    piece->kind = PIECE_PLAIN;
    if (!piece_may_be_plain(r->zone, piece, view, r->now_s, r->latest_s)) {
        piece->kind = PIECE_MULTI;
        return;
    }
    for (unsigned proof = PROOF_VER; proof < N_PROOFS; proof++) {
        piece->planned[proof] = ver_hash(proof_ver(view, proof));
    }
}

bool proved_plain(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_runs *runs, size_t first, size_t n)
{
    struct proved_piece *piece = new_piece(r, partition, cover, runs, first);
    if (piece == NULL) {
        return false;
    }
    if (r->has_time && !r->careful && piece->kind == PIECE_MULTI) {
        piece->n = n;
        make_plain(r, piece);
    }
    begin_piece(r, piece);
    return true;
}

void proved_command(struct proved_read *r, const char *command, size_t n_keys, size_t n_words)
{
    struct proved_piece *piece = &r->pieces[r->n_pieces - 1];
    piece->n_commands++;
    r->scans = r->scans || strstr(command, "SCAN") != NULL;
    if (piece->kind != PIECE_SCRIPT) {
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
    resp_slice(r->args_to, word);
}

void proved_piece_end(struct proved_read *r, size_t n)
{
    struct proved_piece *piece = &r->pieces[r->n_pieces - 1];
    piece->n = n;
    switch (piece->kind) {
    case PIECE_MULTI:
        resp_command(&r->out, "TIME", NULL);
        resp_command(&r->out, "EXEC", NULL);
        return;
    case PIECE_SCRIPT:
        script_head(&r->out, &r->session->scripts, SCRIPT_READ, r->n_keys, r->n_args);
        buffer_append(&r->out, r->keys.p, r->keys.n);
        buffer_append(&r->out, r->args.p, r->args.n);
        r->out.failed = r->out.failed || r->keys.failed || r->args.failed;
        return;
    case PIECE_PLAIN:
        partition_proof_ask(&r->out, r->core->partitions.tag[piece->partition]);
        return;
    }
}

size_t proved_n_replies(const struct proved_piece *piece)
{
    return piece->kind == PIECE_SCRIPT  ? 1
           : piece->kind == PIECE_PLAIN ? piece->n_commands + 1  /* the proof */
                                        : piece->n_commands + 4; /* MULTI, HMGET, .., TIME, EXEC */
}

/* Send each piece to the server of its partition.  False: out of memory. */
static bool dispatch_pieces(struct proved_read *r, struct dispatcher *dispatcher)
{
    bool ok = !r->out.failed;
    for (size_t i = r->n_sent; ok && i < r->n_pieces; i++) {
        const struct proved_piece *piece = &r->pieces[i];
        size_t end = i + 1 < r->n_pieces ? r->pieces[i + 1].at : r->out.n;
        static const enum dispatcher_kind kinds[] = {[PIECE_MULTI] = DISPATCH_MULTI,
            [PIECE_SCRIPT] = DISPATCH_SINGLE,
            [PIECE_PLAIN] = DISPATCH_READS};
        struct buffer *out = dispatcher_begin(dispatcher, piece->partition, kinds[piece->kind]);
        buffer_append(out, r->out.p + piece->at, end - piece->at);
        ok = dispatcher_end(dispatcher, proved_n_replies(piece));
    }
    if (ok) {
        dispatcher_send(dispatcher, r->job->deadline_ms);
    }
    return ok;
}

/* Send as much as the socket takes now; proved_take() notices a lost connection.  False: out of
 * memory. */
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
    buffer_clear(&r->out, PROVED_OUT_KEPT);
    r->n_sent = r->n_pieces;
    *r->ret_lost = *r->ret_lost || !ok;
    return ok;
}

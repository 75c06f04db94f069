/* proved_read.h - the covers of one window in several partitions, and reading from them.
 *
 * Layer: storage, private to the operations of readers.c (counts of one number have their own:
 * count/read.h).  Belongs to a reader thread.
 *
 * The same rules as there (ARCHITECTURE.md, "What may be read"): plan from what was last seen of
 * each partition; each piece of reading is one MULTI on one partition that also reads `rolled` and
 * TIME, and is taken only if by these every bucket that it touches is legal; else w->stale, and all
 * is planned and read again.  A piece is one turn of Redis's thread: whoever writes one keeps it
 * below 5 ms. Where Redis's memory is full, and it queues nothing in a MULTI, the same goes out as
 * a script.
 *
 *     window_plan(w, partitions)                    covers
 *     window_piece_begin(w, p, first, n); window_piece_put(w, ..); ..; window_piece_end(w); ..
 *     window_send(w)
 *     window_take(w, &items); ..                    in the order of the pieces; one item a command
 *
 * What was remembered (read/run.h) may take the place of reading it; what is recalled by a proof
 * that a reply to this question has had is later than the question all the same.
 */
#ifndef STORAGE_READ_PROVED_READ_H
#define STORAGE_READ_PROVED_READ_H

#include "storage/read/operation.h"
#include "storage/read/run.h"
#include "storage/schema/key.h"

#define WINDOW_READS_MAX 200000 /* keys of one question */
#define WINDOW_RECALLS   2      /* attempts; where late events come faster than that, all is read */

struct window_read {
    struct core *core;
    struct session *session;
    struct storage_job *job;
    struct window_question *asked;
    bool *ret_lost;
    const struct zone *zone;
    struct window window; /* asked for, moved on with the clock */
    struct cover *covers; /* PARTITIONS_MAX, owned; of the partitions that were planned */
    int64_t latest_s;     /* Redis's clock in the newest reply */
    bool stale;           /* a plan did not hold, or what was recalled */
    bool full;            /* Redis's memory is full: read by script */
    size_t page_bytes;    /* of the pages' names in asked->keys */

    struct partition_known *known; /* PARTITIONS_MAX, owned; of those that were planned */
    bool forgetful;                /* nothing is recalled: it did not hold before */

    struct buffer out; /* not sent yet */
    struct buffer keys, args;
    size_t n_args;
    struct window_piece *pieces; /* owned: not taken yet, from next on; the last one may be open */
    size_t n_pieces, pieces_capacity, next;
};

/* What is known of a partition: by what it was planned, then by the newest reply. */
struct partition_known {
    struct partition_view view;
    bool seen;         /* by a reply of this question */
    unsigned unproved; /* by which proofs (closed_same) something was recalled before any reply */
    unsigned changed;  /* proofs that were not the same in all replies of this question */
};

/* One turn of Redis's thread, about buckets [first, first + n) of the partition's cover. */
struct window_piece {
    unsigned partition;
    size_t first, n;
    size_t n_commands;
    bool by_script;
};

/* False: no memory.  End in either case; that also reads, and drops, replies that were not taken.
 */
bool window_begin(struct window_read *w, struct reader *reader, struct storage_job *job,
    struct window_question *asked, bool *ret_lost);
void window_end(struct window_read *w);

/* Plan, for the first time or anew, the window, or with round_outer what is answerable around it,
 * for the partitions of a bit set; asked->answered is what was planned. */
enum storage_err window_plan(struct window_read *w, uint64_t partitions);

/* The end of the minute that Redis's clock is in lies behind the window that was asked for up to
 * now: w->window was moved on, plan again. */
bool window_moved_on(struct window_read *w);

/* False: no memory; the other two are harmless then. */
bool window_piece_begin(struct window_read *w, unsigned partition, size_t first, size_t n);
/* A command about one key: @command, the key, and perhaps an argument, and COUNT and its value
 * (NULL: none). */
void window_piece_put(struct window_read *w, const char *command, const struct key *key,
    const char *argument, const char *count);
void window_piece_end(struct window_read *w);

/* False: no memory; the connection is given up. */
bool window_send(struct window_read *w);

/* May something that is remembered of @partition be taken, if it has the proofs of
 * w->known[partition].view?  Then say so when it was: the next reply must have that proof, or
 * w->stale; unless one of this question has had it already. */
bool window_may_recall(const struct window_read *w, unsigned partition);
void window_recalled(struct window_read *w, unsigned partition, enum proof proof);

/* Take the reply to the next piece.  *ret_items has one item a command and lives until the next
 * call; NULL where the piece is void (w->stale).  *ret_piece, if wanted: which piece it is. */
enum storage_err window_take(
    struct window_read *w, const struct reply **ret_items, struct window_piece *ret_piece);

/* STORAGE_REFUSED: something came that tallyd did not put there. */
enum storage_err window_foreign(struct window_read *w);

/* Count a key that was read, and with explain list it: see counted_keys_add. */
enum storage_err window_count_key(struct window_read *w, unsigned partition, enum key_kind kind,
    struct slice page, struct bucket bucket);
/* Forget those; and at the end: put them in order. */
void window_clear_keys(struct window_read *w);
void window_sort_keys(struct window_question *asked);

#endif

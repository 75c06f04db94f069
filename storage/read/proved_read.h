/* proved_read.h - read buckets of several partitions, and take only what Redis proves to be legal.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * Which buckets answer a question depends on how far each partition is rolled up, and another
 * process may move that on at any time.  So a question is planned by what was last seen of each
 * partition, and each reading brings the proof along: a *piece* is one MULTI on one partition that
 * also reads its state (`state`) and TIME.  Its data is taken only if by these every bucket that
 * was read is legal.  Else the reading is `stale`, and all is planned and read again from what was
 * learnt.  storage/read/README.md says why that is enough.
 *
 * A piece is one turn of Redis's thread: a caller keeps it below 5 ms.  A Redis whose memory is
 * full queues nothing in a MULTI; then the same goes out as a script (lua/read.lua).
 *
 * A piece may be *plain*: its commands and then the ids of the state, one after the other over one
 * connection, which costs Redis a third.  See proved_plain().
 *
 *     proved_attempts(r, attempt, data)           until one attempt holds; an attempt does:
 *     proved_view(r, p)                               plan by this, for each partition
 *     proved_piece(r, p, cover, runs, first)          ask: the buckets of a cover from first on;
 *                                                     or proved_plain(r, p, .., first, n)
 *       proved_command(r, "MGET", 2, 0); proved_key(r, ..); proved_key(r, ..); ..
 *     proved_piece_end(r, n)                          they are n buckets
 *     proved_send(r)
 *     proved_take(r, &items, ..)                      in the order of the pieces: an item a command
 *
 * What is remembered (read/run.h) may take the place of reading it, with proved_recall().
 */
#ifndef STORAGE_READ_PROVED_READ_H
#define STORAGE_READ_PROVED_READ_H

#include "storage/read/operation.h"
#include "storage/read/run.h"

enum piece_kind { PIECE_MULTI, PIECE_SCRIPT, PIECE_PLAIN };

/* Buckets [first, first + n) of a cover in one partition, read in one turn of Redis's thread. */
struct proved_piece {
    unsigned partition;
    const struct cover *cover;
    const struct remembered_runs *runs; /* whose recalled ones were not read; NULL: all were */
    size_t first, n;
    size_t n_commands;
    enum piece_kind kind;
    uint64_t planned[N_PROOFS]; /* of a plain one: ver_hash() of the ids by which it was planned */
    size_t at;                  /* of its commands, in the bytes that are not sent yet */
};

/* What is known of a partition: by what it was planned, then by the newest reply. */
struct proved_partition {
    struct partition_view view;
    bool seen;         /* by a reply of this attempt */
    unsigned unproved; /* by which proofs (a set) something was recalled before any reply */
    unsigned changed;  /* proofs that were not the same in all replies of this attempt */
};

/* Zeroed before the first question; memory is kept from question to question until
 * proved_release(). */
struct proved_read {
    struct core *core;
    struct session *session;
    struct storage_job *job;
    struct window_question *asked;
    bool *ret_lost;
    const struct zone *zone; /* where the site's buckets are cut */
    struct window window;    /* asked for, moved on with the clock */
    int64_t now_s;           /* Redis's clock when this attempt began, to plan by */
    int64_t latest_s;        /* core_latest_s() then: one horizon for all partitions */
    int64_t begun_ms;        /* when it began, CLOCK_MONOTONIC */
    int64_t first_s;         /* Redis's clock in the first reply of this attempt; 0: none came */
    bool stale;              /* a plan did not hold, or what was recalled */
    bool forgetful;          /* nothing is recalled: it did not hold twice */
    bool full;               /* Redis's memory is full: read by script */
    bool careful;            /* a plain piece did not hold: no more of them */
    bool has_time;           /* a piece of this attempt brings Redis's clock */
    size_t page_bytes;       /* of the pages' names in asked->keys */

    struct proved_partition *known; /* owned, one a partition; of those that were planned */
    struct cover *covers;           /* owned, one a partition; of one window: see window.h */

    struct buffer out; /* not sent yet */
    struct buffer keys, args;
    size_t n_keys, n_args;
    struct buffer *keys_to, *args_to; /* of the command at hand */
    struct proved_piece *pieces;      /* owned: not taken yet, from next on; the last may be open */
    size_t n_pieces, pieces_capacity, next;
    size_t n_sent;    /* of pieces */
    bool scans;       /* a command of this attempt has a cursor, which is good on one server only */
    uint64_t changes; /* the cursor holds while this is the dispatcher's number of changes */
};

/* Begin a question.  False: no memory.  End in either case: that reads, and drops, replies that
 * were not taken. */
bool proved_begin(struct proved_read *r, struct reader *reader, struct storage_job *job,
    struct window_question *asked, bool *ret_lost);
void proved_end(struct proved_read *r);
void proved_release(struct proved_read *r);

/* Have @attempt plan and read until what it read holds, or it fails, or the job is late.  Where the
 * question's end is now, an attempt also fails to hold if by Redis's clock a later minute had begun
 * already. */
typedef enum storage_err proved_attempt_fn(void *data);
enum storage_err proved_attempts(struct proved_read *r, proved_attempt_fn *attempt, void *data);

/* Does the attempt hold so far? */
bool proved_holds(const struct proved_read *r);

/* ---- planning ---- */

/* What was last seen of @partition, to plan by. */
const struct partition_view *proved_view(struct proved_read *r, unsigned partition);

/* What decides in this attempt how a partition of @view, which must live as long, tiles a window.
 */
struct cover_basis proved_basis(const struct proved_read *r, const struct partition_view *view);

/* ---- asking ---- */

/* Begin a piece.  @cover, @runs and what they point to live until the piece is taken.  False: no
 * memory, and no piece. */
bool proved_piece(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_runs *runs, size_t first);
/* The same for @n buckets that are known.  The piece is a plain one if each of them that must be
 * read is a minute of an hour that is not closed for readers, or may be used for two hours to come,
 * and an earlier piece of the attempt brings the clock.
 *
 * Data and state are two readings then, and the proof is as good.  The id behind the data must be
 * the one by which the piece was planned, and an id never comes twice.  So what was closed then was
 * closed when the data was read, and what was open was open: its minutes were kept whatever the
 * time.  What is recalled must have its proof in that state.  What is to be remembered must have
 * the proof that it was planned by: nothing has changed in between.
 *
 * A fold may come between two commands, so figures that are compared with each other must be in one
 * reply, or in a piece of the other kind. */
bool proved_plain(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_runs *runs, size_t first, size_t n);
/* A command of so many keys and so many words behind these; then give them, in that order.  A
 * failure shows in proved_send(). */
void proved_command(struct proved_read *r, const char *command, size_t n_keys, size_t n_words);
void proved_key(struct proved_read *r, const struct key *key);
void proved_word(struct proved_read *r, struct slice word);
/* The piece is about @n buckets. */
void proved_piece_end(struct proved_read *r, size_t n);

/* False: no memory; the connection is given up. */
bool proved_send(struct proved_read *r);

/* Take the reply to the next piece.  *ret_items has one item a command and lives until the next
 * call; NULL where the piece does not hold (r->stale).  *ret_piece, if wanted: which piece it
 * is. */
enum storage_err proved_take(
    struct proved_read *r, const struct reply **ret_items, struct proved_piece *ret_piece);

/* STORAGE_REFUSED: something came that tallyd did not put there. */
enum storage_err proved_foreign(struct proved_read *r);

/* ---- remembering ---- */

/* May anything that is remembered of @partition be taken? */
bool proved_may_recall(const struct proved_read *r, unsigned partition);

/* If what @run in @partition came to is remembered under @id, have @use look at it.  The next reply
 * about the partition must have the run's proof, or the reading is stale; unless a reply of this
 * attempt has had it already: then what is remembered is later than the question, too. */
bool proved_recall(struct proved_read *r, unsigned partition, const struct remembered_run *run,
    const struct cache_id *id, void (*use)(void *data, const void *value, size_t n), void *data);

/* The hash of the id by which something that is remembered of @partition may be taken.  0: there is
 * none, or the next reply will hardly have the same. */
uint64_t proved_by(const struct proved_read *r, unsigned partition, enum proof proof);

/* Something that is remembered elsewhere was taken by @proof of @partition: the same holds. */
void proved_rely(struct proved_read *r, unsigned partition, enum proof proof);

/* All that @run, of @cover, came to was read.  Does one proof stand for all of it? */
bool proved_may_keep(const struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_run *run);

/* If so, remember the @n bytes that it came to. */
void proved_keep(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_run *run, const struct cache_id *id, const void *value, size_t n);

#endif

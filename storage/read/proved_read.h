/* proved_read.h - read buckets of several partitions, and take only what Redis proves to be legal.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * Which buckets answer a question depends on how far each partition is rolled up, and another
 * process may roll up more at any time.  So a question is planned by what was last seen of each
 * partition, and each reading brings the proof along: a *piece* is one MULTI on one partition that
 * also reads the partition's `state` and TIME.  The data is taken only if every bucket that was
 * read is legal by that state and time.  Else the reading is `stale`, and everything is planned and
 * read again by the states that were learnt.  storage/read/README.md says why that is enough.
 *
 * A piece is one turn of Redis's thread: a caller keeps it below 5 ms.  A Redis whose memory is
 * full queues nothing in a MULTI; then the same piece is sent as a script (lua/read.lua).
 *
 * A piece may be *plain*: its commands and then the ids of the state are sent one after the other
 * over one connection, which costs Redis a third of a MULTI.  See proved_plain().
 *
 *     proved_attempts(r, attempt, data)           until one attempt holds; an attempt does:
 *     proved_view(r, p)                               plan by this, for each partition
 *     proved_piece(r, p, cover, runs, first)          ask: the buckets of a cover from first on;
 *                                                     or proved_plain(r, p, .., first, n)
 *       proved_command(r, "MGET", 2, 0); proved_key(r, ..); proved_key(r, ..); ..
 *     proved_piece_end(r, n)                          the piece reads n buckets of the cover
 *     proved_send(r)
 *     proved_take(r, &items, ..)                      in the order of the pieces: an item a command
 *
 * With proved_recall() a run that is remembered (read/run.h) need not be read.
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
    const struct remembered_runs *runs; /* the recalled ones are not read; NULL: all are read */
    size_t first, n;
    size_t n_commands; /* without those of the state and the time */
    enum piece_kind kind;
    uint64_t planned[N_PROOFS]; /* a plain piece: ver_hash() of the ids by which it was planned */
    size_t at;                  /* where its commands begin in the bytes that are not sent yet */
};

/* What is known of a partition: first what it was planned by, then what the newest reply said.  A
 * set of proofs has the bits 1 << enum proof. */
struct proved_partition {
    struct partition_view view;
    bool seen;         /* a reply of this attempt has brought the view, or proved it */
    unsigned unproved; /* set of proofs by which something was recalled before any reply */
    unsigned changed;  /* set of proofs that were not the same in all replies of this attempt */
};

/* Zeroed before the first question; memory is kept from question to question until
 * proved_release(). */
struct proved_read {
    struct core *core;
    struct session *session;
    struct storage_job *job;
    struct window_question *asked;
    bool *ret_lost;
    const struct zone *zone; /* the site's zone, in which its buckets begin and end */
    struct window window;    /* the one asked for; if it ends now, to_s moves on with the clock */
    int64_t now_s;           /* Redis's clock when this attempt began: the attempt plans by it */
    int64_t latest_s;        /* core_latest_s() then: one horizon for all partitions */
    int64_t begun_ms;        /* when this attempt began, CLOCK_MONOTONIC */
    int64_t first_s;         /* Redis's clock in the attempt's first reply, 0 before that reply; in
                              * a cluster now_s, as only one of several servers has the clock */
    bool stale;              /* the plan did not hold, or something that was recalled did not */
    bool forgetful;          /* two attempts did not hold: nothing is recalled any more */
    bool full;               /* Redis's memory is full: pieces are scripts */
    bool careful;            /* a plain piece did not hold: no piece is plain any more */
    bool has_time;           /* a piece of this attempt brings Redis's clock */
    size_t page_bytes;       /* bytes of the pages' names in asked->keys */
    size_t keys_planned;     /* keys of the plan, of all pages and partitions; set by what plans */
    size_t minutes_room;     /* so many keys more may be listed to name the future by minutes */

    struct proved_partition *known; /* owned, one a partition; valid after proved_view() */
    struct cover *covers;           /* owned, one a partition: window_plan() in window.h fills it */

    struct buffer out;                /* commands that are not sent yet */
    struct buffer keys, args;         /* keys and arguments of the script at hand */
    size_t n_keys, n_args;            /* how many keys and args has */
    struct buffer *keys_to, *args_to; /* where the keys and words of the piece at hand go */
    struct proved_piece *pieces;      /* owned; from next on not taken yet; the last may be open */
    size_t n_pieces, pieces_capacity, next;
    size_t n_sent;    /* pieces before this one are sent */
    bool scans;       /* a command of this attempt has a cursor, which is good on one server only */
    uint64_t changes; /* the cursor holds while this is the dispatcher's number of changes */
};

/* Begin a question; @reader, @job, @asked and @ret_lost outlive it.  False: no memory.  In either
 * case proved_end() must follow, which reads and drops the replies that were not taken.
 * proved_release() frees what is kept between questions. */
bool proved_begin(struct proved_read *r, struct reader *reader, struct storage_job *job,
    struct window_question *asked, bool *ret_lost);
void proved_end(struct proved_read *r);
void proved_release(struct proved_read *r);

/* Call @attempt, with @data, until what it plans and reads holds, or it fails, or the job is late
 * (STORAGE_LATE).  If the question's window ends now, an attempt does not hold either when Redis's
 * clock says that a later minute has begun. */
typedef enum storage_err proved_attempt_fn(void *data);
enum storage_err proved_attempts(struct proved_read *r, proved_attempt_fn *attempt, void *data);

/* Does the attempt hold so far? */
bool proved_holds(const struct proved_read *r);

/* ---- planning ---- */

/* What was last seen of @partition: the attempt plans by it.  Call this in each attempt before
 * anything of the partition is recalled or read: what was noted of it before is forgotten. */
const struct partition_view *proved_view(struct proved_read *r, unsigned partition);

/* What decides in this attempt how a partition with @view tiles a window.  @view must outlive the
 * result. */
struct cover_basis proved_basis(const struct proved_read *r, const struct partition_view *view);

/* ---- asking ---- */

/* Begin a piece with the buckets of @cover from @first on.  @cover, @runs and what they point to
 * live until the piece is taken.  False: no memory, and no piece. */
bool proved_piece(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_runs *runs, size_t first);
/* The same where the number of buckets is known: @n.  The piece is plain if each bucket that must
 * be read is a minute of an hour that is not closed for readers, or may be used for two hours to
 * come, and an earlier piece of the attempt brings the clock.
 *
 * Data and state are two readings then, and the proof is as good.  The id behind the data must be
 * the one by which the piece was planned, and an id never comes twice.  So a bucket that was closed
 * in the plan was closed when the data was read.  An hour that was open was open still, and its
 * minutes were kept whatever the time.  What is recalled must have its proof in the state behind
 * the data.  What is to be remembered must have the proof that it was planned by: then nothing has
 * changed in between.
 *
 * A fold may come between two commands of a plain piece, so figures that are compared with each
 * other must be in one reply, or in a piece that is not plain. */
bool proved_plain(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_runs *runs, size_t first, size_t n);
/* Begin a command that has @n_keys keys and @n_words words behind them.  The keys and then the
 * words must follow.  If memory is out, proved_send() fails. */
void proved_command(struct proved_read *r, const char *command, size_t n_keys, size_t n_words);
void proved_key(struct proved_read *r, const struct key *key);
void proved_word(struct proved_read *r, struct slice word);
/* End the piece: it reads @n buckets, from the first one on. */
void proved_piece_end(struct proved_read *r, size_t n);

/* Send the pieces that were ended.  False: no memory, and the connection is given up. */
bool proved_send(struct proved_read *r);

/* Take the reply to the next piece, by the job's deadline.  *ret_items has one item a command and
 * lives until the next call; it is NULL if the piece does not hold (r->stale), and after an error.
 * *ret_piece, unless @ret_piece is NULL, becomes a copy of the piece. */
enum storage_err proved_take(
    struct proved_read *r, const struct reply **ret_items, struct proved_piece *ret_piece);

/* A reply is not what tallyd has written: the job's detail says so.  Returns STORAGE_REFUSED. */
enum storage_err proved_foreign(struct proved_read *r);

/* ---- remembering ---- */

/* May anything that is remembered of @partition be taken? */
bool proved_may_recall(const struct proved_read *r, unsigned partition);

/* If what @run in @partition came to is remembered under @id, have @use look at the value, under
 * the cache's lock.  The next reply about the partition must have the run's proof, or the reading
 * is stale.  If a reply of this attempt has had the proof already, none need follow: the value is
 * known to hold later than the question came. */
bool proved_recall(struct proved_read *r, unsigned partition, const struct remembered_run *run,
    const struct cache_id *id, void (*use)(void *data, const void *value, size_t n), void *data);

/* ver_hash() of the id that @proof now has in @partition: what is remembered with it may be taken.
 * 0: there is no such id, or the next reply will hardly have the same one. */
uint64_t proved_by(const struct proved_read *r, unsigned partition, enum proof proof);

/* Something that the caller itself remembers was taken by @proof of @partition: as with
 * proved_recall() the next reply must have that proof. */
void proved_rely(struct proved_read *r, unsigned partition, enum proof proof);

/* All buckets of @run, of @cover, were read in @partition.  Does one proof stand for all of it? */
bool proved_may_keep(const struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_run *run);

/* If so, remember under @id the @n bytes of @value, to which the run came. */
void proved_keep(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_run *run, const struct cache_id *id, const void *value, size_t n);

#endif

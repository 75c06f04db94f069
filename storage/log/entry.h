/* entry.h - requests that are appended to a log together: one entry of a Redis stream.
 *
 * Layer: storage.  A request is never cut over two entries, so it is in Redis whole or not at all.
 *
 * An entry is made by the thread that appends, and has one owner until it is answered.  From then
 * on its content does not change, and folds (fold/fold.h) share it: references are counted.
 *
 * In the stream an entry has these fields, in this order:
 *
 *     h    9 bytes: ENTRY_VERSION, then the time of arrival in ms of Redis's clock (PROTOCOL.md),
 *          little endian
 *     p    the chunks (log/chunk.h) of all requests without a key, one behind the other, and packed
 *          together (log/packed.h)
 *     k    for each request with a key that was not used before: its chunk
 */
#ifndef STORAGE_LOG_ENTRY_H
#define STORAGE_LOG_ENTRY_H

#include <stdatomic.h>

#include "storage/base/arena.h"
#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/job.h"
#include "storage/log/packed.h"
#include "storage/redis/reply.h"
#include "storage/schema/log_state.h"

#define ENTRY_VERSION 2 /* log_age.lua knows it, too */
#define ENTRY_HEAD    (1 + sizeof(uint64_t))

/* A request with an Idempotency-Key. */
struct entry_keyed {
    struct key_digest key, body;
    struct slice answer, chunk; /* in the entry's arena */
    size_t n_events;            /* 0 in an entry that was read from the stream */
    bool is_ticketed;           /* the request asks which actions were first */
    enum key_outcome outcome;   /* what the last answer says of the key */
    bool is_in; /* the request's events count with this entry: by the first answer */
};

enum entry_state {
    ENTRY_WAITING, /* to be sent, for the first time or again */
    ENTRY_SENT,
    ENTRY_ANSWERED,
};

struct log_entry {
    struct log_entry *next; /* in the appender's list */
    _Atomic unsigned references;

    char id[LOG_ID_TEXT + 1];  /* the log's */
    uint64_t n;                /* the entry's number in the log, from 1 */
    int64_t arrival_ms;        /* Redis's clock, UTC */
    struct buffer packed;      /* chunks of the requests without a key */
    size_t n_plain;            /* events in these chunks; 0 if they were read from the stream */
    struct entry_keyed *keyed; /* owned array: the requests with a key */
    size_t n_keyed;
    struct arena arena;
    char era[LOG_ID_TEXT + 1];         /* that of the first answer; "": none, or from the stream */
    struct entry_users *_Atomic users; /* owned; NULL until a reader asks: see entry_users.h */

    /* The appender's.  Instants are CLOCK_MONOTONIC. */
    enum entry_state state;
    bool on_lost;             /* a copy may be in Redis, or under way on a lost connection */
    int64_t begun_ms;         /* when the entry was made */
    int64_t sent_us;          /* when the last copy was sent */
    int64_t answered_ms;      /* when the entry was answered last */
    int64_t acknowledged_us;  /* when the entry was answered first; 0: never */
    bool is_let_fold;         /* acknowledge_let_fold() has put the entry into `unfolded` */
    struct storage_job *jobs; /* lent jobs that are not answered yet */
};

/* Memory in which one thread makes entries.  Zeroed it is empty. */
struct entry_scratch {
    struct buffer chunks, packed;
};

void entry_scratch_release(struct entry_scratch *scratch);

/* Make an entry of a list of jobs, with copies of their chunks (job->chunk).  The entry has the
 * jobs then, and the caller the one reference.  @arrival_ms: Redis's clock, UTC.  NULL: out of
 * memory; the jobs are as they were. */
struct log_entry *entry_new(
    struct storage_job *jobs, int64_t arrival_ms, struct entry_scratch *scratch) MUST_CHECK;

/* Make an entry of an item of XRANGE's reply on log @id.  NULL: the item is none of ours
 * (*ret_foreign), or memory is out. */
struct log_entry *entry_parse(
    const char *id, const struct reply *item, bool *ret_foreign) MUST_CHECK;

/* Take a further reference, and give one back.  Thread-safe.  The last one frees the entry; NULL is
 * harmless. */
struct log_entry *entry_reference(struct log_entry *entry);
void entry_release(struct log_entry *entry);

/* How many events count: those of requests without a key, and of requests with a key that are in.
 * 0 for an entry that was read from the stream. */
size_t entry_events(const struct log_entry *entry);

/* About how many bytes of memory the entry takes, with all its requests. */
size_t entry_bytes(const struct log_entry *entry);

/* The chunks of an entry: for @i = 0 of all requests without a key, for @i from 1 to n_keyed of one
 * request with a key, or none if that is not in.  *ret lies in the entry or in @arena. */
enum packed_err entry_chunks(
    const struct log_entry *entry, size_t i, struct arena *arena, struct slice *ret) MUST_CHECK;

/* Write the field `h` of the entry, as it stands in the stream. */
void entry_print_head(const struct log_entry *entry, uint8_t head[ENTRY_HEAD]);

#endif

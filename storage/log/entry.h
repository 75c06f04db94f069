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

/* A request with a key. */
struct entry_keyed {
    struct key_digest key, body;
    struct slice answer, chunk; /* in the entry's arena */
    size_t n_events;
    bool is_ticketed;         /* the request asks which actions were first */
    enum key_outcome outcome; /* by the last answer */
    bool is_in;               /* by the first answer: this entry holds it */
};

enum entry_state {
    ENTRY_WAITING, /* to be sent, for the first time or again */
    ENTRY_SENT,
    ENTRY_ANSWERED,
};

struct log_entry {
    struct log_entry *next; /* of its owner */
    _Atomic unsigned references;

    char id[LOG_ID_TEXT + 1]; /* of the log */
    uint64_t n;               /* its number there, from 1 */
    int64_t arrival_ms;
    struct buffer packed; /* chunks of requests without a key */
    size_t n_plain;       /* their events */
    struct entry_keyed *keyed;
    size_t n_keyed;
    struct arena arena;
    char era[LOG_ID_TEXT + 1];         /* of the connection that was answered */
    struct entry_users *_Atomic users; /* owned; NULL until a reader asks: see entry_users.h */

    /* The appender's. */
    enum entry_state state;
    bool on_lost;             /* a copy may be in Redis, or under way on a lost connection */
    int64_t begun_ms;         /* CLOCK_MONOTONIC: made */
    int64_t sent_us;          /* CLOCK_MONOTONIC, of the last copy */
    int64_t answered_ms;      /* CLOCK_MONOTONIC */
    int64_t acknowledged_us;  /* CLOCK_MONOTONIC: answered for the first time; 0: never */
    bool is_let_fold;         /* it is among what waits to be folded, or was */
    struct storage_job *jobs; /* lent, not answered yet */
};

/* Memory for the making of entries, of one thread.  Zeroed it is empty. */
struct entry_scratch {
    struct buffer chunks, packed;
};

void entry_scratch_release(struct entry_scratch *scratch);

/* Make an entry of a list of jobs, with their chunks: see job->chunk.  NULL: out of memory; the
 * jobs are as they were. */
struct log_entry *entry_new(
    struct storage_job *jobs, int64_t arrival_ms, struct entry_scratch *scratch) MUST_CHECK;

/* Read an item of XRANGE's reply on the log @id.  NULL: it is none of ours (*ret_foreign), or
 * memory is out. */
struct log_entry *entry_parse(
    const char *id, const struct reply *item, bool *ret_foreign) MUST_CHECK;

struct log_entry *entry_reference(struct log_entry *entry);
void entry_release(struct log_entry *entry); /* frees with the last reference; NULL is harmless */

/* What counts: of all requests without a key, and of those with a key that are in. */
size_t entry_events(const struct log_entry *entry);
size_t entry_bytes(const struct log_entry *entry);

/* The chunks of an entry: with @i 0 of its requests without a key together, with @i from 1 to
 * n_keyed of a request with a key, none if it is not in.  *ret lies in the entry or in @arena. */
enum packed_err entry_chunks(
    const struct log_entry *entry, size_t i, struct arena *arena, struct slice *ret) MUST_CHECK;

/* The head as it stands in the stream. */
void entry_print_head(const struct log_entry *entry, uint8_t head[ENTRY_HEAD]);

#endif

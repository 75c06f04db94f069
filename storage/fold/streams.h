/* streams.h - which logs there are, how far they are counted, and their entries as Redis has them.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * A process folds its own log from memory.  It reads a log from Redis where that is another
 * process's, or where its own memory is of no use: Redis went back, or memory was short.
 */
#ifndef STORAGE_FOLD_STREAMS_H
#define STORAGE_FOLD_STREAMS_H

#include "storage/fold/batch.h"
#include "storage/schema/heads.h"
#include "storage/session/session.h"

/* A log, as far as it is known on the connection. */
struct stream {
    char id[LOG_ID_TEXT + 1];
    uint64_t folded;    /* all partitions have counted at least the entries up to this number */
    bool is_known;      /* `folded` was read from the cursors; else it is a lower bound */
    bool is_broken;     /* the entry behind `folded` cannot be read */
    bool is_told;       /* operators were told that this entry cannot be read */
    uint64_t must_read; /* entries up to this number are read from Redis, not taken from memory */
    /* A log of another process in a cluster may be folded up to this number (gather_streams.c). */
    uint64_t replicated;
    int64_t
        lags_since_ms; /* since when later entries may not, CLOCK_MONOTONIC; 0: there are none */
};

/* Zeroed it is empty. */
struct streams {
    struct stream *streams; /* owned */
    size_t n, capacity;
    unsigned count; /* one command reads so many entries; 0: none was read yet */
};

/* A connection was lost, so Redis may have gone back: forget all streams. */
void streams_forget(struct streams *streams);
void streams_release(struct streams *streams);

/* The stream of log @id, added if it is new.  NULL: out of memory.  Valid until the next call that
 * adds or forgets one. */
struct stream *streams_find(struct streams *streams, const char *id);

/* Append to @out the command that cuts the entries up to @to off log @id in @partition. */
void stream_write_trim(
    const struct core *core, unsigned partition, const char *id, uint64_t to, struct buffer *out);

/* The functions below ask Redis, and wait until @deadline_ms (CLOCK_MONOTONIC).  Anything but
 * REDIS_OK_STATUS: the connection must be closed. */

/* Read the heads into @ret; in a cluster those of all places.  Every server of a cluster answers,
 * which says that it has not gone back since the session's connections stand.  Streams of logs
 * without a head are forgotten. */
enum redis_status streams_look(struct streams *streams, struct core *core, struct session *session,
    int64_t deadline_ms, struct heads *ret) MUST_CHECK;

/* Read from the cursors how far all partitions have counted the log: stream->folded. */
enum redis_status streams_learn(struct core *core, struct session *session, int64_t deadline_ms,
    struct stream *stream) MUST_CHECK;

/* Put entries of the log at @place into @batch: those behind stream->folded and up to @to, but no
 * more than a piece of about 1 MB.  @to is not above the head.  The log's `broken` in the batch is
 * set where the next entry is none of ours.  A full batch gets none. */
enum redis_status streams_read(struct streams *streams, struct core *core, struct session *session,
    int64_t deadline_ms, struct stream *stream, unsigned place, uint64_t to,
    struct batch *batch) MUST_CHECK;

/* Cut the entries up to @to off log @id.  With one server only. */
enum redis_status stream_trim(struct core *core, struct session *session, int64_t deadline_ms,
    const char *id, uint64_t to) MUST_CHECK;

#endif

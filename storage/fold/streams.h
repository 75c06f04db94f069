/* streams.h - which logs there are, how far they are counted, and their entries as Redis has them.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * A process folds its own log from memory.  It reads a log from Redis where that is another
 * process's, or where its own memory is of no use: Redis went back, or memory was short.
 */
#ifndef STORAGE_FOLD_STREAMS_H
#define STORAGE_FOLD_STREAMS_H

#include "storage/core/session.h"
#include "storage/fold/batch.h"
#include "storage/fold/heads.h"

/* A log, as far as it is known on the connection. */
struct stream {
    char id[LOG_ID_TEXT + 1];
    uint64_t folded;    /* all partitions have counted the entries up to this one, at least.. */
    bool is_known;      /* ..and somebody has looked */
    bool is_broken;     /* the entry behind `folded` cannot be read.. */
    bool is_told;       /* ..which was said, once an entry */
    uint64_t must_read; /* entries up to this one are read from Redis, not taken from memory */
    /* Of another process of a cluster: entries up to this one may be folded (gather_streams.c).. */
    uint64_t replicated;
    int64_t lags_since_ms; /* ..and since when those behind it may not; CLOCK_MONOTONIC, 0: none */
};

/* Zeroed it is empty. */
struct streams {
    struct stream *streams; /* owned */
    size_t n, capacity;
    unsigned count; /* entries to be read at once; 0: the first time */
};

/* The connection is another one: nothing is known. */
void streams_forget(struct streams *streams);
void streams_release(struct streams *streams);

/* The log @id, made if it is new.  NULL: out of memory.  Valid until the next call. */
struct stream *streams_find(struct streams *streams, const char *id);

/* Append the command that cuts the entries up to @to off the log @id, which lies in @partition. */
void stream_write_trim(
    const struct core *core, unsigned partition, const char *id, uint64_t to, struct buffer *out);

/* The functions below ask Redis.  Anything but REDIS_OK_STATUS: the connection must be closed. */

/* Read the heads; of a cluster those of all places.  An answer of every server then says that the
 * server has not gone back for as long as the session's connections have stood.  Logs without a
 * head are forgotten. */
enum redis_status streams_look(struct streams *streams, struct core *core, struct session *session,
    int64_t deadline_ms, struct heads *ret) MUST_CHECK;

/* Find out how far all partitions have counted the log. */
enum redis_status streams_learn(struct core *core, struct session *session, int64_t deadline_ms,
    struct stream *stream) MUST_CHECK;

/* Put entries of the log at @place behind stream->folded, up to @to, into @batch: a piece of some
 * MB.  @to is not above the head.  The log's `broken` in the batch is set where the next entry is
 * none of ours. */
enum redis_status streams_read(struct streams *streams, struct core *core, struct session *session,
    int64_t deadline_ms, struct stream *stream, unsigned place, uint64_t to,
    struct batch *batch) MUST_CHECK;

/* Have that done, with one server. */
enum redis_status stream_trim(struct core *core, struct session *session, int64_t deadline_ms,
    const char *id, uint64_t to) MUST_CHECK;

#endif

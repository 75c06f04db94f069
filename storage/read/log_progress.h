/* log_progress.h - which logs are open, and how much of each is counted in all partitions.
 *
 * Layer: storage.  Not thread-safe: one owner.
 *
 * Requests are acknowledged when they are in a log, and counted later, partition by partition
 * (schema/log_state.h).  Heads and cursors tell whether everything is counted: a reader looks at
 * them before a question is answered, the leader before it closes a log.
 *
 * In a cluster the registers of all places are read, and the cursors at the same time over other
 * connections.  A cursor that has reached a head's number says all the same that all was counted.
 *
 * A reader of questions remembers what was counted.  A cursor only grows unless its server goes
 * back, and that ends a connection.  So as long as all connections stand over which heads and
 * cursors were read, only the cursors of logs that have grown since are read.  Each server answers
 * something at each reading all the same.  Otherwise the reader would not notice that a server has
 * gone back, and what was found would not hold for others (read/settled.h).
 *
 * A reader of questions also asks for the ids of partition 0 and the time, in the same round trip
 * (read/settled.h: struct settled_moment).
 *
 * With one server the cursors are read after the heads, over the same connection.  A cursor only
 * grows, unless Redis goes back, and that ends the connection.  So what is counted by a reading
 * stays counted for as long as the connection lives.
 */
#ifndef STORAGE_READ_LOG_PROGRESS_H
#define STORAGE_READ_LOG_PROGRESS_H

#include "storage/schema/heads.h"
#include "storage/schema/part_set.h"
#include "storage/session/session.h"

#define LOG_PROGRESS_IDS 256

/* Zeroed at first. */
struct log_progress {
    struct heads logs; /* all logs that are open, with `counted` */
    struct heads next; /* the next reading puts the logs here */
    char detail[96];   /* with STORAGE_REFUSED: why */
    bool remembers;  /* set by the caller: cursors of logs that have not grown are not read again */
    int64_t time_us; /* with `remembers`: Redis's clock, read behind the heads, UTC */
    char ids[LOG_PROGRESS_IDS]; /* with `remembers`: the ids of partition 0, a blank behind each */
    size_t ids_n;               /* how many bytes `ids` has; 0: partition 0 has no state */
    bool is_whole;              /* the last reading has read all cursors */
    int64_t stood_us; /* since when all connections stood at the last reading; 0: it failed */
    /* With several servers: one partition of each server that has no place of logs, known for
     * `version` of the topology. */
    struct part_set others;
    bool knows_others;
    unsigned version;
};

void log_progress_release(struct log_progress *progress);

/* Read anew which logs are open, and how far they are.  One round trip; a second one if there is a
 * log that was not there at the last reading, or, where the reader remembers, if one has grown.
 * @session is connected, or has a dispatcher; *ret_lost becomes true if the session must be closed.
 * If the reading fails, progress->logs are the logs of the one before, and their `counted` is void.
 * @deadline_ms is of CLOCK_MONOTONIC. */
enum storage_err log_progress_read(struct log_progress *progress, struct core *core,
    struct session *session, int64_t deadline_ms, bool *ret_lost) MUST_CHECK;

#endif

/* trim.h - in a cluster, cuts off this process's streams what was counted long enough ago.
 *
 * Layer: storage.  Belongs to the fold's thread.
 * Source: the log's protocol (storage/log/PROTOCOL.md, "Fold").
 *
 * With one server a stream is cut in the transaction that counts its entries, because the server
 * has one history.  In a cluster the server of a partition may go back behind the cut of a log that
 * lies on another one, and then the entries are needed again.  So the cursors are read twice over
 * the same connections, as far apart as a server can go back.  What had been counted at the first
 * reading can be lost no more at the second one, and is cut off.
 */
#ifndef STORAGE_FOLD_TRIM_H
#define STORAGE_FOLD_TRIM_H

#include "storage/log/unfolded.h"
#include "storage/session/asks.h"

/* Zeroed at first. */
struct trimmer {
    struct trim_log {
        char id[LOG_ID_TEXT + 1];
        uint64_t counted;       /* all partitions had counted so far at the last reading */
        uint64_t cut;           /* the stream is cut up to this number */
    } logs[LOG_PARTITIONS_MAX]; /* the process's own logs, by place */
    int64_t read_ms;            /* when the cursors were read last, CLOCK_MONOTONIC; 0: never */
    int64_t stood_us;           /* session_stands_since() at that reading */
};

/* Read the cursors of the logs in @unfolded, and cut their streams, if it is time for that, over
 * the dispatcher of @session, until @deadline_ms (CLOCK_MONOTONIC).  What fails is done at a later
 * call. */
void trim_streams(struct trimmer *trimmer, struct core *core, struct session *session,
    struct unfolded *unfolded, int64_t deadline_ms);

#endif

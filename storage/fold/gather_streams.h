/* gather_streams.h - what is folded of logs from their streams, and how far.
 *
 * Layer: storage, private to the round.  Belongs to the fold's thread.
 *
 * Those are the logs of other processes, and own ones of which memory is of no use.
 *
 * In a cluster the record of a key, and what its request counts for, lie on servers that go back one
 * without the other.  A failover that takes an entry with its records must not leave what the entry
 * was counted for: its client has no answer yet, and repeats the request.  A process knows of its
 * own entries what replicas have acknowledged (log/acknowledge.h).  Of those of others it asks the
 * log's server, behind the reading of the heads (core/replicated.h).
 *
 * Questions wait for such entries for a second at most.  Then the entries are folded all the same,
 * as their own process folds them: a server whose replicas are gone would stop all questions.
 */
#ifndef STORAGE_FOLD_GATHER_STREAMS_H
#define STORAGE_FOLD_GATHER_STREAMS_H

#include "storage/fold/round_goal.h"

/* Put into the batch a piece of each log that is behind its goal, and is not there from memory. */
enum redis_status gather_streams(struct round *round, const struct goal *goal) MUST_CHECK;

#endif

/* acknowledge.h - which entries enough replicas have, so that their clients can be told.
 *
 * Layer: storage, private to the appender.  Belongs to the writer's thread: no I/O of its own.
 * Source: the command WAIT (redis.io/commands/wait), tried on Redis 7.0.15 and Valkey 8.0.1.
 *
 * A failover takes what the old master had and the new one had not received.  With --ack-replicas N
 * an entry is acknowledged when N replicas have it, by WAIT on the connection that has appended it:
 *
 *     append   append   heartbeat   WAIT N 100      one write to the socket, one WAIT for all of it
 *
 * - WAIT waits for what its own connection has written last.  As the first command of a connection
 *   WAIT is answered at once, as if all replicas had everything.  So the answer to an entry must
 *   come from a write: append.lua writes the head's time where it finds the entry there (DUP).
 * - If fewer replicas than N acknowledge in time, another WAIT is sent.  An entry that is answered
 *   and not acknowledged is held, and appended again after a lost connection; at the deadline its
 *   clients get STORAGE_UNKNOWN.
 * - While too few replicas acknowledge, each WAIT holds the connection up.  So there is one at a
 *   time then, and none before all entries are sent that go again.
 * - When too few replicas have acknowledged for a second, requests are refused before they are
 *   sent (STORAGE_ALONE), until enough acknowledge again.
 * - A server that is deposed while a WAIT is under way answers UNBLOCKED, and the connection is
 *   given up.  A server that was deposed and does not know that has no replicas that answer.
 */
#ifndef STORAGE_LOG_ACKNOWLEDGE_H
#define STORAGE_LOG_ACKNOWLEDGE_H

#include "storage/log/append_state.h"

/* Is a WAIT to be sent behind the commands in a->out? */
bool acknowledge_wait_is_due(const struct appender *a);

/* The reply to a WAIT that was sent at @sent_ms came.  False: the connection must be given up. */
bool acknowledge_take_wait(
    struct appender *a, const struct reply *reply, int64_t sent_ms) MUST_CHECK;

/* Put @entry into a->unfolded, where folds take it, unless it was put there before.  See
 * replicated_before_folded(). */
void acknowledge_let_fold(struct appender *a, struct log_entry *entry);

/* The same for all entries that are answered and not acknowledged. */
void acknowledge_let_fold_all(struct appender *a);

/* Acknowledge the entries that are answered, unless replicas are waited for: their jobs are done.
 * But while a round of folds is under way that questions wait for (unfolded_keep()), entries of
 * large requests are kept until the round's end. */
void acknowledge_or_keep(struct appender *a);

/* Acknowledge the kept entries now: the connection is lost, or the process ends. */
void acknowledge_kept(struct appender *a);

/* Have too few replicas acknowledged for so long that requests are to be refused? */
bool acknowledge_lags(const struct appender *a, int64_t now_ms);

#endif

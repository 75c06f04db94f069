/* acknowledge.h - which entries so many replicas have that their clients can be told.
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
 *   it is answered at once, as if all replicas had everything.  So whatever answers an entry is a
 *   write: append.lua writes the head's time where it finds the entry there (DUP).
 * - A WAIT that fewer replicas than N answer in time is sent again.  What is answered and not
 *   acknowledged is held, and appended again after a lost connection; at the deadline its clients
 *   get STORAGE_UNKNOWN.
 * - While too few acknowledge, each WAIT holds the connection up.  So there is one at a time then,
 *   and none before all has been sent that goes again.
 * - When too few replicas have acknowledged for a second, requests are refused before they are
 *   sent (STORAGE_ALONE), until enough acknowledge again.
 * - A server that is deposed while a WAIT is under way answers UNBLOCKED: the connection is given
 *   up.  One that was deposed and has not heard of it has no replicas that answer.
 */
#ifndef STORAGE_LOG_ACKNOWLEDGE_H
#define STORAGE_LOG_ACKNOWLEDGE_H

#include "storage/log/append_state.h"

/* Is a WAIT to be sent behind the commands in a->out? */
bool acknowledge_wait_is_due(const struct appender *a);

/* The reply to a WAIT that was sent at @sent_ms came.  False: the connection must be given up. */
bool acknowledge_take_wait(
    struct appender *a, const struct reply *reply, int64_t sent_ms) MUST_CHECK;

/* @entry may be folded, see replicated_before_folded(); once only. */
void acknowledge_let_fold(struct appender *a, struct log_entry *entry);

/* So may all entries that are answered. */
void acknowledge_let_fold_all(struct appender *a);

/* Where no replicas are waited for: entries that are answered are acknowledged, and their jobs are
 * done.  But while a round of folds is under way that questions wait for (unfolded_keep()), entries
 * of large requests are kept until its end. */
void acknowledge_or_keep(struct appender *a);

/* Acknowledge the kept entries now: the connection is lost, or the process ends. */
void acknowledge_kept(struct appender *a);

/* Have too few replicas acknowledged for so long that requests are to be refused? */
bool acknowledge_lags(const struct appender *a, int64_t now_ms);

#endif

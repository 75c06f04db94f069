/* append.h - entries on their way into this process's log, each once.
 *
 * Layer: storage.  Belongs to the writer's thread, which moves the bytes: no I/O of its own.
 * Source: the log's protocol (storage/log/PROTOCOL.md, "Append"), model-checked in
 * tests/model/log_append.pml.
 *
 * A writer numbers its entries 1, 2, 3.. and sends them in order, several at once.  Redis takes an
 * entry only behind the one before (lua/append.lua), so whatever is sent twice is there once.
 *
 *                  send                  OK, DUP
 *     WAITING ------------> SENT -------------------> ANSWERED ----> let go, when safe
 *        ^                   |                            |
 *        +-------------------+----------------------------+
 *          GAP, an error, or the connection is lost
 *
 * Clients are told when as many replicas as are asked for have acknowledged an answered entry
 * (acknowledge.h); where none are asked for, that is at once.
 *
 * The rules, with their reasons, are the protocol's: what is sent again and when, what is held and
 * for how long, which entry may be given up, and what becomes of entries when the log is gone.
 */
#ifndef STORAGE_LOG_APPEND_H
#define STORAGE_LOG_APPEND_H

#include "storage/log/append_state.h"

/* @place is that of the log, below core_logs().  @core and @unfolded outlive the appender. */
void appender_init(
    struct appender *a, struct core *core, unsigned place, struct unfolded *unfolded);
void appender_release(struct appender *a);

/* A connection stands: register a log, unless one is registered, and begin an era.  Waits for Redis
 * until @deadline_ms (CLOCK_MONOTONIC).  False: the connection must be given up, and session->why
 * says why. */
bool appender_connected(
    struct appender *a, struct session *session, int64_t deadline_ms) MUST_CHECK;

/* Encode the commands that are to be sent into a->out: a->n_out of them.  False: no memory.  Then
 * the connection must be given up, because half a command must not be sent. */
bool appender_pump(struct appender *a, const struct session *session, int64_t now_ms) MUST_CHECK;

/* Take @reply, to the oldest command that waits for one.  Answers no jobs: see
 * appender_answer_late().  False: the connection must be given up. */
bool appender_take_reply(struct appender *a, const struct reply *reply) MUST_CHECK;

/* The connection is gone: entries that are held go again over the next one.  Answers the jobs that
 * are done. */
void appender_lost(struct appender *a);

/* May another entry be made now?  No, if enough are under way, or if the writers of the process
 * hold too many bytes.  How much waits to be folded is not looked at. */
bool appender_has_room(const struct appender *a);

/* Make an entry of a list of jobs, which belong to the entry then.  @arrival_ms: Redis's clock,
 * UTC.  False: no memory, and the jobs are as they were. */
bool appender_add(struct appender *a, struct storage_job *jobs, int64_t arrival_ms) MUST_CHECK;

/* Release the entries that are safe. */
void appender_let_go(struct appender *a);

/* Does any job wait for an answer? */
bool appender_has_jobs(const struct appender *a);

/* Answer the jobs that are done, and those whose deadline is over.  An entry that may be in Redis
 * is appended all the same.  Returns the next deadline, CLOCK_MONOTONIC; INT64_MAX: no job waits.
 */
int64_t appender_answer_late(struct appender *a, int64_t now_ms);

/* When something must be sent, CLOCK_MONOTONIC: a heartbeat, or what was refused just now.
 * INT64_MAX: nothing.  There is a connection. */
int64_t appender_due_ms(struct appender *a, int64_t now_ms);

#endif

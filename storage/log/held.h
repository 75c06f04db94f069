/* held.h - the entries that an appender holds, until Redis cannot lose them any more.
 *
 * Layer: storage, private to the appender.  Belongs to the writer's thread.
 *
 * Entries stand in the order of their numbers.  A server that crashes may go back by
 * core->go_back_ms, and one whose replica takes over by core->hold_ms.  An answer on the connection
 * that has answered an entry, so much later, proves that the entry was not lost.
 */
#ifndef STORAGE_LOG_HELD_H
#define STORAGE_LOG_HELD_H

#include "storage/base/compiler.h"
#include "storage/log/append_state.h"

#define HELD_UNDER_WAY_MAX 2 /* entries that are sent, or wait for replicas */

/* Put @entry, which is not sent yet, behind the last one. */
void held_add(struct appender *a, struct log_entry *entry);

/* Note in core->unsafe_since_us since when there is one that was acknowledged, and may be lost. */
void held_show_unsafe(const struct appender *a);

/* May another entry be made now? */
bool appender_has_room(const struct appender *a);

/* Make an entry of a list of jobs.  False: no memory, and the jobs are as they were. */
bool appender_add(struct appender *a, struct storage_job *jobs, int64_t arrival_ms) MUST_CHECK;

/* Let go of what is safe. */
void appender_let_go(struct appender *a);

#endif

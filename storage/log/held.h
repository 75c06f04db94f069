/* held.h - the entries that an appender holds: which are safe, and how many there may be.
 *
 * Layer: storage, private to the appender.  Belongs to the writer's thread.
 *
 * An entry is held from when it is made until Redis cannot lose it any more (append.h).  What all
 * writers of a process hold together is bounded: while there is no room no further entry is made.
 */
#ifndef STORAGE_LOG_HELD_H
#define STORAGE_LOG_HELD_H

#include "storage/log/append_state.h"

#define UNDER_WAY_MAX 2 /* entries */

/* May another entry be made now?  How much may wait to be folded is not looked at. */
bool appender_has_room(const struct appender *a);

/* Make an entry of a list of jobs.  False: no memory, and the jobs are as they were. */
bool appender_add(struct appender *a, struct storage_job *jobs, int64_t arrival_ms) MUST_CHECK;

/* Let go of what is safe. */
void appender_let_go(struct appender *a);

/* Put @entry behind the last one: it is open. */
void held_append(struct appender *a, struct log_entry *entry);

/* Tell core_may_lose() since when there is one that was acknowledged and is not safe. */
void held_show(const struct appender *a);

#endif

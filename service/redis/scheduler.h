/* scheduler.h - ask Linux for short time slices, so that Redis is let in at once when it wakes.
 *
 * Layer: service.
 *
 * Every write waits for Redis's one thread.  That thread sleeps three times in each fdatasync(),
 * and works for a tenth of a millisecond in between.  Where all processors are busy, Linux lets a
 * running thread go on to the end of its slice, some 3 ms, before a waking thread may run.  So HTTP
 * threads and clients hold up the thread that all of them wait for.  A thread that asked for
 * shorter slices may run at once (EEVDF; "PREEMPT_SHORT", Linux 6.12).  That is no priority: the
 * thread's share of the processors stays the same.
 */
#ifndef SERVICE_REDIS_SCHEDULER_H
#define SERVICE_REDIS_SCHEDULER_H

#include <stdbool.h>

#define SCHEDULER_SHORT_NS 100000 /* the shortest slice that Linux takes */

/* Ask for slices of SCHEDULER_SHORT_NS, for the calling thread and for what it forks or executes.
 * No privileges are needed, and the function is async-signal-safe.  An older kernel takes the wish
 * and does nothing.  False: nothing has changed, because the kernel refused or because the thread
 * is under another policy than the usual ones. */
bool scheduler_ask_short_slices(void);

#endif

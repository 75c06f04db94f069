/* scheduler.h - what tallyd asks of the kernel's scheduler.
 *
 * Layer: service.
 *
 * Every write waits for Redis's one thread, which sleeps thrice in each fdatasync() and works for a
 * tenth of a millisecond in between.  Where all processors are busy, Linux lets the thread that is
 * running go on to the end of its slice (some 3 ms) before it lets in one that wakes, and so do
 * HTTP threads and clients hold up the one that all of them wait for.  One that asked for shorter
 * slices is let in at once (EEVDF; "PREEMPT_SHORT", Linux 6.12).  It is no priority: its share of
 * the processors is what it was.
 */
#ifndef SERVICE_REDIS_SCHEDULER_H
#define SERVICE_REDIS_SCHEDULER_H

#include <stdbool.h>

#define SCHEDULER_SHORT_NS 100000 /* the least that Linux takes */

/* Ask for slices of SCHEDULER_SHORT_NS, for the calling thread and what it forks or executes.
 * Needs no privileges; async-signal-safe.  An older kernel takes it and does nothing.  False: it is
 * refused, or the thread is under another policy than the usual ones; nothing has changed. */
bool scheduler_ask_short_slices(void);

#endif

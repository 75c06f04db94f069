/* fleet.h - the hot pages of all processes that serve the same data: each publishes its own list.
 *
 * Layer: storage.  Thread-safe.
 *
 * A process counts only the requests that came to it (hot_pages.h).  So every 2 s each process
 * writes its list (published.h) to t:{0}:hot:<process>, and a process that is asked for the hot
 * pages adds up all lists.  A list expires after 4 s, so nothing in an answer is older than 5 s,
 * and a process that died is forgotten.  The zset t:{0}:hot names the processes.  A process that
 * finds itself alone there writes no list.
 */
#ifndef STORAGE_HOT_FLEET_H
#define STORAGE_HOT_FLEET_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct hot_fleet;
struct hot_pages;

/* Draw core->process, and start the thread; @hot outlives it.  NULL: no memory or no thread. */
struct hot_fleet *hot_fleet_start(struct core *core, struct hot_pages *hot) MUST_CHECK;

/* Stop the thread and free.  core->stopping is set before. */
void hot_fleet_stop(struct hot_fleet *fleet);

#endif

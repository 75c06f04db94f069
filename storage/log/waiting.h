/* waiting.h - what is acknowledged, not counted yet, and in this process's memory: for a question
 * that can look there.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A question waits until everything is counted that was acknowledged before it came
 * (read/settled.h).  A question about one user and some pages need not wait, because the entries in
 * memory show at once whether they have a page view of that user.  So the question looks at these
 * entries, and at what is counted if they do not answer it.  An event that is found in both places
 * says no more than an event in one.
 *
 *     1. waiting_take    the entries that wait in memory are noted: whatever was acknowledged
 *                        before and is not among them, was counted
 *     2. waiting_find    the events of the user in these entries are found
 *     3. waiting_await   heads and cursors are read.  The noted entries must be all that the
 *                        cursors lack, as they were answered under the era that stands in the
 *                        heads.  Otherwise another process has acknowledged something, or Redis
 *                        went back and lost what was counted: the question waits as any other.
 *                        What Redis has appended and not answered was acknowledged to nobody,
 *                        unless it has a key (unfolded_shows())
 *     4.                 the answer is read, over the connection of step 3
 *
 * Why in this order: an entry that was counted and left memory before step 1 is missing in Redis
 * only if Redis went back.  Then the cursors of step 3 lack it, or the connection ends before step
 * 4 is answered.
 */
#ifndef STORAGE_LOG_WAITING_H
#define STORAGE_LOG_WAITING_H

#include "storage/log/chunk.h"
#include "storage/log/entry.h"
#include "storage/log/entry_users.h"
#include "storage/read/operation.h"

#define WAITING_ALL    SIZE_MAX /* entries for waiting_take(): all that wait */
#define WAITING_NEWEST 64       /* entries for waiting_take(): the newest ones */

/* Zeroed it is empty. */
struct waiting {
    struct log_entry **entries; /* owned array of owned references, in order of number */
    size_t n;
    char id[LOG_ID_TEXT + 1]; /* the id of the process's log */
    uint64_t last;            /* no entry behind this number had been acknowledged */
};

/* Note the newest @most entries that wait.  WAITING_ALL is a base for waiting_await().
 * WAITING_NEWEST are the entries of the last 20 ms or so of a busy service: they answer nearly all
 * questions about a user of whom an event has just come, where thousands of entries wait.  Nothing
 * is noted with several servers, because each can go back alone, and the logs lie in several
 * places; nor while a site is being deleted, because its events are not counted; nor where an
 * entry has waited for seconds. */
void waiting_take(struct waiting *ret, struct core *core, size_t most);
void waiting_release(struct waiting *waiting);

/* Call @take for the events of @site's @user, the newest entries first, until @is_enough says that
 * no more are needed.  @data is for both functions.  False: out of memory. */
bool waiting_find(const struct waiting *waiting, struct slice site, struct slice user,
    entry_event_fn *take, bool (*is_enough)(const void *data), void *data) MUST_CHECK;

/* Wait, as settled_await(), until all is counted but what @waiting has.  *ret_lost becomes true if
 * the reader's connection must be closed. */
enum storage_err waiting_await(const struct waiting *waiting, struct reader *reader,
    struct storage_job *job, bool *ret_lost) MUST_CHECK;

#endif

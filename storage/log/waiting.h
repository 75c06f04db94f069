/* waiting.h - what is acknowledged, not counted yet, and in this process's memory: for a question
 * that can look there.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A question waits until everything is counted that was acknowledged before it came
 * (read/settled.h).  A question about one user and some pages need not: whether a page view of that
 * user is among the entries that wait can be seen at once.  So it looks at the entries, and at what
 * is counted if that is not the answer.  An event that is found in both places is no more seen than
 * in one.
 *
 *     1. waiting_take    the entries that wait in memory are noted: whatever was acknowledged
 *                        before and is not among them, was counted
 *     2. waiting_find    the events of the user in them
 *     3. waiting_await   heads and cursors are read.  The noted entries must be all that the
 *                        cursors lack, as they were answered under the era that stands in the
 *                        heads.  Otherwise another process has acknowledged something, or Redis
 *                        went back and lost what was counted: the question waits as any other.
 *                        What Redis has appended and not answered was acknowledged to nobody,
 *                        unless it has a key (unfolded_shows())
 *     4.                 the question is read, over the connection of step 3
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

#define WAITING_ALL    SIZE_MAX
#define WAITING_NEWEST 64

/* Zeroed it is empty. */
struct waiting {
    struct log_entry **entries; /* owned, with a reference to each; in order of number */
    size_t n;
    char id[LOG_ID_TEXT + 1]; /* of the process's log */
    uint64_t last;            /* what is behind that entry had been acknowledged to nobody */
};

/* Note what waits, the newest @most entries of it.  WAITING_ALL is a base for waiting_await().
 * WAITING_NEWEST, of a busy service those of the last 20 ms or so, answers nearly all questions
 * about somebody who was just written about, where thousands of entries wait.  With several
 * servers nothing is noted, for each can go back alone, and no place of logs is like another; nor
 * while a site is being deleted, for its events are not counted; nor where something has waited
 * for seconds. */
void waiting_take(struct waiting *ret, struct core *core, size_t most);
void waiting_release(struct waiting *waiting);

/* Call @take for events of @site's @user, the newest entries first, until @is_enough.  False: out
 * of memory. */
bool waiting_find(const struct waiting *waiting, struct slice site, struct slice user,
    entry_event_fn *take, bool (*is_enough)(const void *data), void *data) MUST_CHECK;

/* As settled_await(), but for what @waiting has. */
enum storage_err waiting_await(const struct waiting *waiting, struct reader *reader,
    struct storage_job *job, bool *ret_lost) MUST_CHECK;

#endif

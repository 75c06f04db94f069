/* waiting.h - what is acknowledged, not counted yet, and in this process's memory: for a question
 * that can look there.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A question waits until everything is counted that was acknowledged before it came
 * (read/settled.h).  A question about one user and some pages need not: whether a page view of that
 * user is among the entries that wait can be seen at once.  So it looks at the entries and at what
 * is counted.  An event that is found in both places is no more seen than in one.
 *
 *     1. the entries that wait in memory are noted: whatever was acknowledged before and is not
 *        among them, was counted
 *     2. heads and cursors are read
 *     3. the noted entries must be all that the cursors lack, as they were answered under the era
 *        that stands in the heads.  Otherwise another process has acknowledged something, or Redis
 *        went back and lost what was counted: the question waits as any other
 *     4. the question is read, over the connection of step 2
 *
 * Why in this order: an entry that was counted and left memory before step 1 is missing in Redis
 * only if Redis went back.  Then the cursors of step 2 lack it, or the connection ends before step
 * 4 is answered.
 */
#ifndef STORAGE_LOG_WAITING_H
#define STORAGE_LOG_WAITING_H

#include "storage/log/chunk.h"
#include "storage/log/entry.h"
#include "storage/read/operation.h"

/* Zeroed it is empty. */
struct waiting {
    struct log_entry **entries; /* owned, with a reference to each; in order of number */
    size_t n;
};

void waiting_release(struct waiting *waiting);

/* As settled_await(), but for what @ret has afterwards.  On an error it is empty. */
enum storage_err waiting_await(
    struct waiting *ret, struct reader *reader, struct storage_job *job, bool *ret_lost) MUST_CHECK;

/* Called for an event. */
typedef void waiting_event_fn(void *data, const struct chunk_event *event);

/* Call @take for each event of @site's @user.  False: out of memory. */
bool waiting_find(const struct waiting *waiting, struct slice site, struct slice user,
    waiting_event_fn *take, void *data) MUST_CHECK;

#endif

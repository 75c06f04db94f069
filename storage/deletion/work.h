/* work.h - the deletions that were asked for are done: by the process that leads the rollups.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * A deletion goes through these steps; the record (schema/deletion_record.h) says how far it is:
 *
 *     mark     every partition learns of it: from then on no fold counts events of the site, or
 *              views for the pages (schema/tombstones.h), no fold sets a counter to what it knows
 *              of the counter (known/known_counts.h), and no leader of before does anything
 *     sweep    what there is of it is taken away, until a sweep finds nothing (sweep.h)
 *     end      every partition learns that nothing is taken away any more, and that what arrives
 *              from an instant on counts again, which has not come yet.  Then the instant is
 *              written into the record
 *     over     once that instant has come, every partition is asked whether it still knows the end,
 *              and the record is taken away
 *
 * While there is no deletion the leader of a cluster searches for marks that have no record, and
 * ends them: orphans.c.
 *
 * A process that dies leaves the record, and the next leader begins again with the mark, unless the
 * record has the instant.  What is done twice does no harm.  What is done late would: so a process
 * that had no answer goes on under a greater fencing token, which the mark tells every partition.
 * Out of a partition that has gone back behind its mark nothing is taken away.  A process that
 * finds such a partition, or whose connections are not those of the step's beginning, begins again
 * from the record; a sweep is done once more then.
 */
#ifndef STORAGE_DELETION_WORK_H
#define STORAGE_DELETION_WORK_H

#include "storage/core/core.h"
#include "storage/deletion/work_state.h"

/* Work at what is to be deleted, for about 100 ms.  @session is connected, and @token the fencing
 * token of this process, 0 if it does not lead: then the list alone is looked at.  Returns how long
 * to wait before the next call, ms.  *ret_lost becomes true if the session must be closed.  If
 * work->in_doubt, the next call that works needs a token greater than @token. */
int64_t deletion_work(struct deletion_work *work, struct core *core, struct session *session,
    int64_t token, bool *ret_lost);

#endif

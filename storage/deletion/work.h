/* work.h - carries out the deletions that were asked for, in the process that leads the rollups.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * A deletion goes through these steps; the record (schema/deletion_record.h) says how far it is:
 *
 *     mark     every partition learns of the deletion: from then on no fold counts events of the
 *              site, or views for the pages (schema/tombstones.h), no fold sets a counter to what
 *              it remembers (known/known_counts.h), and no earlier leader changes anything
 *     sweep    what there is of the site or the pages is taken away, until a sweep finds nothing
 *              (sweep.h)
 *     end      every partition learns that nothing is taken away any more, and an instant that has
 *              not come yet: what arrives from then on counts again.  Then the instant is written
 *              into the record
 *     over     once that instant has come, every partition is asked whether it still knows the end,
 *              and the record is taken away
 *
 * While there is no deletion the leader of a cluster searches for marks that have no record, and
 * ends them: orphans.c.
 *
 * A process that dies leaves the record, and the next leader begins again with the mark, unless the
 * record has the instant.  A command that is carried out twice does no harm, but one that comes
 * late would: so a process that had no answer goes on under a greater fencing token, which the mark
 * tells every partition.  From a partition that has gone back behind its mark nothing is taken
 * away.  A process that finds such a partition, or whose connections are not those of the step's
 * beginning, begins again from the record; then a sweep is done once more.
 */
#ifndef STORAGE_DELETION_WORK_H
#define STORAGE_DELETION_WORK_H

#include "storage/core/core.h"
#include "storage/deletion/work_state.h"

/* Work at the deletions for about 100 ms.  @session is connected.  @token is the fencing token of
 * this process; 0: the process does not lead, and only looks at the list.  Returns how many ms to
 * wait before the next call.  *ret_lost becomes true if the session must be closed.  If
 * work->in_doubt is true afterwards, the next call that works needs a token greater than @token. */
int64_t deletion_work(struct deletion_work *work, struct core *core, struct session *session,
    int64_t token, bool *ret_lost);

#endif

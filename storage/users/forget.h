/* forget.h - users that are forgotten, and days that are kept no more.
 *
 * Layer: storage.
 * Forgetting is one atomic step (forget_user.lua) after which nobody finds the user, and no process
 * uses a remembered index of the partition; then the index's bits are cleared, some bitmaps at a
 * time.  An index that is being cleared stands in the set `gone`, so that a crash in between is
 * mended by the next one who comes: a job for the same partition, or the rollup's leader.
 */
#ifndef STORAGE_USERS_FORGET_H
#define STORAGE_USERS_FORGET_H

#include "storage/read/operation.h"

reader_op_fn forget_user_run;

/* Once an hour, by the rollup's leader: take away bitmaps of days that are not kept any more, and
 * finish what was left half done.  False: the connection must be closed. */
bool activity_sweep(struct core *core, struct session *session);

#endif

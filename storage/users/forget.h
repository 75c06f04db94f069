/* forget.h - forget a user, and take away days that are not kept any more.
 *
 * Layer: storage.  Belongs to the thread whose session it is.
 *
 * Forgetting begins with one atomic step (forget_user.lua).  After that step no question finds the
 * user, and no process uses an index of the partition that it remembers.  Then the bits of the
 * user's index are cleared in all bitmaps of the site, some bitmaps at a time.
 *
 * An index whose bits are being cleared stands in the set `gone` of its partition.  A process that
 * dies half way leaves the index there.  The next job for the same partition clears the rest, or
 * the process that leads the rollup does.
 */
#ifndef STORAGE_USERS_FORGET_H
#define STORAGE_USERS_FORGET_H

#include "storage/base/compiler.h"
#include "storage/read/operation.h"

/* Once an hour, in the process that leads the rollup: take away @partition's bitmaps of days that
 * are not kept any more, and clear its indices that stand in `gone`.  @session is connected to the
 * partition's server.  False: the session must be closed. */
bool activity_sweep(struct core *core, struct session *session, unsigned partition) MUST_CHECK;

#endif

/* deletion_fetch.h - which sites are being deleted is looked at while events come.
 *
 * Layer: storage.  Thread-safe.
 *
 * The rollup's thread looks every second, but not during a long pass, nor in a process that takes
 * no part in rollups.
 */
#ifndef STORAGE_DELETION_FETCH_H
#define STORAGE_DELETION_FETCH_H

#include "storage/core/core.h"
#include "storage/readers.h"

/* Have a reader look, if the last look is old (core/deletions.h).  Does not wait. */
void deletion_fetch(struct core *core, struct readers *readers);

#endif

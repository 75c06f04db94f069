/* list.h - the deletions that are under way: t:{0}:deletions.
 *
 * Layer: storage.  One owner: the thread whose pipeline it is.
 */
#ifndef STORAGE_DELETION_LIST_H
#define STORAGE_DELETION_LIST_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/read/pipeline.h"
#include "storage/schema/key.h"

/* Append the key of the list to @out, as a word. */
void deletion_list_put(const struct core *core, struct buffer *out);

/* Read the list, and have core->deletions learn from it.  The reply (HGETALL) lives until the next
 * command of @p.  NULL after a fault: see p->err. */
const struct reply *deletion_list_read(struct core *core, struct pipeline *p);

static inline bool deletion_list_learn(struct core *core, struct pipeline *p)
{
    return deletion_list_read(core, p) != NULL;
}

#endif

/* wish.h - a process that does not lead the rollups wishes for a pass now.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * The wish is a random id in t:{0}:wish, and goes by itself after a minute.  The process that leads
 * reads the id before the pass that fulfils the wish, and takes only that id away behind the pass:
 * whoever wished meanwhile has set another one, and gets another pass.
 *
 * The session leads to partition 0's server, and is lost where no answer comes.
 */
#ifndef STORAGE_ROLLUP_WISH_H
#define STORAGE_ROLLUP_WISH_H

#include "storage/core/core.h"
#include "storage/core/session.h"

#define WISH_ID_SIZE 33 /* bytes of its text, with the NUL */

/* Wish, in place of an older wish.  False: it is not known whether Redis has it. */
bool wish_make(struct core *core, struct session *session);

/* Copy the wish that stands; "" if there is none, or if it cannot be read. */
void wish_read(struct core *core, struct session *session, char ret_id[WISH_ID_SIZE]);

/* Take the wish @id away, unless another one has come. */
void wish_fulfil(struct core *core, struct session *session, const char *id);

/* Is there no wish any more?  False, too, if that cannot be read. */
bool wish_is_fulfilled(struct core *core, struct session *session);

#endif

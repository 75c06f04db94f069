/* wish.h - a process that does not lead the rollups wishes for a pass now.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * The wish is a random id in t:{0}:wish, and expires after a minute.  The process that leads reads
 * the id before the pass that fulfils the wish, and takes only that id away behind the pass: a
 * process that has wished meanwhile has set another id, and gets another pass.  In the same step
 * the leader adds 1 to t:{0}:wish:done.  If a wish is gone and that count has not grown, the wish
 * was lost, or has expired.  A Redis that has gone back has a smaller count: then the wish counts
 * as lost, too.
 *
 * In all functions the session leads to partition 0's server, and is closed if no answer comes.
 */
#ifndef STORAGE_ROLLUP_WISH_H
#define STORAGE_ROLLUP_WISH_H

#include "storage/core/core.h"
#include "storage/session/session.h"

#define WISH_ID_SIZE 33 /* bytes of its text, with the NUL */

/* Make a wish, in place of an older one.  *ret_done is how many wishes were fulfilled before.
 * False: it is not known whether Redis has the wish. */
bool wish_make(struct core *core, struct session *session, int64_t *ret_done);

/* Copy the wish that stands; "" if there is none, or if it cannot be read. */
void wish_read(struct core *core, struct session *session, char ret_id[WISH_ID_SIZE]);

/* Take the wish @id away, unless another one has come. */
void wish_fulfil(struct core *core, struct session *session, const char *id);

enum wish_fate {
    WISH_STANDS, /* also if Redis cannot be read now */
    WISH_FULFILLED,
    WISH_LOST,
};

/* What became of the wish that was made when @done wishes had been fulfilled? */
enum wish_fate wish_look(struct core *core, struct session *session, int64_t done);

#endif

/* delivery_answer.h - what became of a flush, and what its jobs are told.
 *
 * Layer: storage, private to delivery.c.  A job is answered by the parts that its events are in:
 * all applied, none applied and none that ever will be, or STORAGE_UNKNOWN.
 *
 * Ownership: said with each function.  Thread safety: the writer's thread.
 */
#ifndef STORAGE_WRITE_DELIVERY_ANSWER_H
#define STORAGE_WRITE_DELIVERY_ANSWER_H

#include "storage/core/core.h"
#include "storage/write/flush.h"

/* Every part is answered for good; or nobody waits any more for what was never applied.  (What was
 * applied in part is sent to its end, though its clients have their 504; what is empty because its
 * requests took another way is sent for its place in the lanes: who follows would get a GAP.) */
bool flush_is_finished(const struct flush *flush);

/* Answer the jobs of a flush that is finished, and free it. */
void flush_answer(struct core *core, struct flush *flush);

/* Answer those whose time is up; the rest stays, and so does the flush. */
void flush_answer_late(struct core *core, struct flush *flush, int64_t now_ms);

#endif

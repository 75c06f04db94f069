/* plan.h - which buckets of which partitions answer a question about counts.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread.
 *
 * A question without a step is planned for its window.  A question with a step is planned for each
 * point of the series, so that no bucket reaches over the border between two points.  If that is
 * not possible, the job says what could be asked for instead.
 */
#ifndef STORAGE_COUNT_PLAN_H
#define STORAGE_COUNT_PLAN_H

#include "storage/count/question.h"

/* Plan the portions' covers for *@window.  With round_outer *@window becomes the answerable window
 * around it, if it can not be answered itself.  On STORAGE_NOT_KEPT, _TOO_FINE, _TOO_MANY and
 * _TOO_BROAD q->job says what would work (job/count_job.h). */
enum storage_err count_plan(struct count_question *q, struct window *window);

#endif

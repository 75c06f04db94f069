/* answers.h - answers that are given again while nothing changes.
 *
 * Layer: storage.  Thread-safe.
 *
 * A question of a whole site asks many partitions, at the least for their ids.  Each question looks
 * at the heads of all logs before that (settled.h).  If the heads are the same as when the same
 * question was answered, and no log was closed meanwhile, then nothing was acknowledged, and no
 * partition need be asked: the remembered answer is given.  storage/read/README.md says why that
 * is right; tests/model/answers.pml is the model.
 *
 * An answer is given again only
 *
 *     with the same print              the heads of all logs, how many were closed, and the ids of
 *                                      partition 0
 *     in the same minute               by Redis's clock: so the window of "now" is the same
 *     over connections that stood      before the answer was read: no server has gone back since
 *     for ANSWERS_US                   then all partitions are asked, so a lost one is noticed
 */
#ifndef STORAGE_READ_ANSWERS_H
#define STORAGE_READ_ANSWERS_H

#include "storage/base/arena.h"
#include "storage/read/operation.h"

#define ANSWERS    64      /* answers that are remembered; the question's hash decides the place */
#define ANSWERS_US 1000000 /* microseconds */

/* A question with more names, or an answer with more rows, is not remembered. */
#define ANSWER_NAMES 32
#define ANSWER_ROWS  200

struct answers;

/* NULL: out of memory, or the environment's TALLYD_TEST_ANSWERS is "off" (tests/README.md).  Then
 * no answer is remembered. */
struct answers *answers_new(void);
void answers_free(struct answers *answers); /* NULL is harmless */

/* Is an answer to @job remembered?  To be called after settled_await(), over the same connections.
 * True: the answer was copied into @job. */
bool answers_recall(struct reader *reader, operation_same_fn *same, operation_share_fn *share,
    struct storage_job *job) MUST_CHECK;

/* Remember a copy of @job's answer, which was read after settled_await().  Without memory, or where
 * the answer is too long, nothing is remembered. */
void answers_keep(struct reader *reader, operation_own_fn *own, operation_share_fn *share,
    const struct storage_job *job);

/* Replace *list by a copy of its @n slices, with their bytes, in @arena.  False: there are more
 * than ANSWER_NAMES, or no memory. */
bool answers_own_list(struct arena *arena, const struct slice **list, size_t n) MUST_CHECK;

#endif

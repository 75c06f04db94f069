/* answers.h - answers that are given again while nothing changes.
 *
 * Layer: storage.  Thread-safe.
 *
 * A question of a whole site asks many partitions, at the least for their ids.  Each question looks
 * at the heads of all logs before that (settled.h).  Where those are what they were when the same
 * question was answered, and no log was closed meanwhile, nothing was acknowledged, and so no
 * partition need be asked: the answer of then is the answer.  storage/read/README.md says why;
 * tests/model/answers.pml tries it.
 *
 * An answer is given again only
 *
 *     with the same print              the heads of all logs, how many were closed, and the ids of
 *                                      partition 0
 *     in the same minute               by Redis's clock: so the window of "now" is the same
 *     over connections that stood      before the answer was read: no server has gone back since
 *     for ANSWERS_US                   then the partitions are asked whether they are still there
 */
#ifndef STORAGE_READ_ANSWERS_H
#define STORAGE_READ_ANSWERS_H

#include "storage/base/arena.h"
#include "storage/read/operation.h"

#define ANSWERS    64 /* each in a place that its question decides */
#define ANSWERS_US 1000000

/* A longer question, or answer, is not remembered. */
#define ANSWER_NAMES 32
#define ANSWER_ROWS  200

struct answers;

/* NULL: out of memory, or TALLYD_TEST_ANSWERS says "off" in the environment (tests/README.md). */
struct answers *answers_new(void);
void answers_free(struct answers *answers); /* NULL is harmless */

/* Behind settled_await(), over the same connections: is there an answer to @job?  True: it was
 * copied. */
bool answers_recall(struct reader *reader, operation_same_fn *same, operation_share_fn *share,
    struct storage_job *job) MUST_CHECK;

/* Remember @job's answer, which was read behind settled_await(). */
void answers_keep(struct reader *reader, operation_own_fn *own, operation_share_fn *share,
    const struct storage_job *job);

/* Copy a list of @n slices, with their bytes, into @arena.  False: there are too many, or no
 * memory. */
bool answers_own_list(struct arena *arena, const struct slice **list, size_t n) MUST_CHECK;

#endif

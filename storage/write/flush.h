/* flush.h - many jobs' events gathered into one round trip, cut into parts.
 *
 * Layer: storage.  Belongs to the writer's thread.
 * A flush owns copies of all it needs, so that it outlives its jobs: a client may be answered 504
 * while its events are still being delivered (a part that may have been sent is never dropped, only
 * answered).
 */
#ifndef STORAGE_WRITE_FLUSH_H
#define STORAGE_WRITE_FLUSH_H

#include "storage/base/arena.h"
#include "storage/core/core.h"
#include "storage/schema/hashed_event.h"
#include "storage/write/lane.h"
#include "storage/fold/pace.h"
#include "storage/write/unit.h"

/* What a part's task does with a row.  A task is row << 2 | kind. */
enum task_kind { TASK_PAGE, TASK_SITE, TASK_VISIT };

struct flush {
    struct flush *next;
    struct arena arena;
    struct row *rows;
    size_t n_rows;
    struct unit *units;       /* requests with a key */
    size_t n_units, n_direct; /* n_direct: how many are direct still */
    bool bounced;             /* some that were direct had used keys */
    struct part *parts;       /* n_parts of them; pointers to them are stable */
    size_t n_parts;
    struct storage_job *jobs; /* not answered yet, in order of arrival */
    int64_t gen_ms;
    int64_t sent_us;
};

/* The rows of a job, made by storage_submit: job->rows. */
struct job_rows {
    size_t n;
    struct row rows[];
};

/* So many events fit into one script as a rule: a flush with direct requests has no more. */
#define FLUSH_DIRECT_MAX 160

/* @unit (from 1), a direct one, is not applied from here any more: its job, if it was not answered
 * yet, is taken out and returned. */
struct storage_job *flush_take_direct(struct flush *flush, uint32_t unit);

/* Makes flushes, one after the other; keeps the memory that it needs for that.  NULL: out of
 * memory. */
struct flush_maker;
struct flush_maker *flush_maker_new(struct core *core, const struct pace *pace);
void flush_maker_free(struct flush_maker *maker);

/* Make a flush of the list @jobs (at least one; linked by next; each with job->rows, which is
 * freed).  NULL: out of memory, and the jobs are untouched. */
struct flush *flush_make(struct flush_maker *maker, struct storage_job *jobs, int64_t gen_ms);
void flush_free(struct flush *flush);

#endif

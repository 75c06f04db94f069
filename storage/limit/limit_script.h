/* limit_script.h - jobs for rate limits as calls of scripts, and the scripts' replies as states.
 *
 * Layer: storage, private to limiter.c.  Thread-safe: no state.
 *
 * There are three scripts: one for funnels, one for sliding limits, and one for limits that are
 * decided together.  Many jobs of one kind share a call.  The Lua files say what they take and
 * answer.
 */
#ifndef STORAGE_LIMIT_LIMIT_SCRIPT_H
#define STORAGE_LIMIT_LIMIT_SCRIPT_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/job.h"
#include "storage/redis/reply.h"
#include "storage/redis/script.h"
#include "storage/schema/partition.h"

enum limit_script { LIMIT_SCRIPT_FUNNEL, LIMIT_SCRIPT_SLIDING, LIMIT_SCRIPT_POLICY };
#define LIMIT_SCRIPTS 3

/* Jobs of one call, so that no call holds Redis for long.  Measured: 5 us a funnel, 10 us a sliding
 * limit, 15 us a policy of both with a penalty. */
#define LIMIT_SCRIPT_JOBS_MAX 128
extern const size_t limit_script_jobs_max[LIMIT_SCRIPTS];

/* The script that decides @job. */
enum limit_script limit_script_of(const struct limit_job *job);

/* Write the call of a script for @n jobs, at least one, which are all of that script. */
void limit_script_write(struct buffer *out, const struct script_digests *digests,
    const struct partitions *partitions, enum limit_script script, struct storage_job **jobs,
    size_t n);

/* Write an UNLINK of all that any policy may hold of a key, whatever the policies say now. */
void limit_script_write_reset(
    struct buffer *out, const struct partitions *partitions, const struct limit_reset_job *reset);

/* What a reply holds before the values of the first job, and for each job. */
#define LIMIT_SCRIPT_HEAD 2
size_t limit_script_values(enum limit_script script);

/* Read the values of a job into job->state. */
void limit_script_read(struct limit_job *job, const struct reply *values);

#endif

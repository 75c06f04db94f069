/* append_jobs.h - the requests in entries, and how they are answered.
 *
 * Layer: storage.  Belongs to the writer's thread.
 *
 * An entry outlives its requests: a client may be answered 504 while the entry is still appended.
 */
#ifndef STORAGE_LOG_APPEND_JOBS_H
#define STORAGE_LOG_APPEND_JOBS_H

#include "storage/log/append_state.h"

/* @job is done with @err: appender_answer_late() or appender_answer_done() will tell. */
void appender_mark_done(struct appender *a, struct storage_job *job, enum storage_err err);

/* So are all jobs of @entry that are not answered yet. */
void appender_mark_all_done(struct appender *a, struct log_entry *entry, enum storage_err err);

/* Give up the last entry held, if it was never acknowledged, nothing of it is in Redis and nothing
 * can be under way: its jobs are done with @err, and its number is free.  False: it is none of
 * these. */
bool appender_give_up_last(struct appender *a, enum storage_err err);

/* Does any job wait for an answer? */
bool appender_has_jobs(const struct appender *a);

/* Answer the jobs that are done, and those whose time is up; what may be in Redis is appended all
 * the same. */
void appender_answer_late(struct appender *a, int64_t now_ms);

/* Answer the jobs that are done. */
void appender_answer_done(struct appender *a);

#endif

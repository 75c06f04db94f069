/* append_jobs.c - the requests in entries, and how they are answered. */
#include "storage/log/append.h"

#include <stdio.h>

/* @job is done with @err.  appender_answer_late() or appender_answer_done() will tell it.  An entry
 * outlives its requests: a client may be answered 504 while the entry is still appended. */
static void mark_done(struct appender *a, struct storage_job *job, enum storage_err err)
{
    job->err = err;
    job_queue_append(&a->done, job);
}

void appender_answer_done(struct appender *a)
{
    struct storage_job *next;
    struct storage_job *job = a->done.first;
    a->done = (struct job_queue){0};
    for (; job != NULL; job = next) {
        next = job->next;
        job_done(job, job->err);
    }
}

void appender_mark_all_done(struct appender *a, struct log_entry *entry, enum storage_err err)
{
    struct storage_job *next;
    for (struct storage_job *job = entry->jobs; job != NULL; job = next) {
        next = job->next;
        bool is_told = err == STORAGE_OK && job->u.write.keyed != NULL;
        mark_done(a, job, is_told ? job->err : err); /* take_records() has set job->err */
    }
    entry->jobs = NULL;
}

/* Was the entry ever answered?  After a lost connection such an entry waits to be appended again,
 * under the same number: what was acknowledged is never given up. */
static bool was_answered(const struct log_entry *entry)
{
    return entry->era[0] != '\0';
}

bool appender_give_up_last(struct appender *a, enum storage_err err)
{
    struct log_entry *entry = a->last;
    if (entry == NULL || entry->state != ENTRY_WAITING || entry->on_lost || was_answered(entry)) {
        return false;
    }
    struct log_entry **at = &a->first;
    a->last = NULL;
    for (; *at != entry; at = &a->last->next) {
        a->last = *at;
    }
    *at = NULL;
    a->open = a->open == entry ? NULL : a->open;
    a->unacknowledged = a->unacknowledged == entry ? NULL : a->unacknowledged;
    a->unsafe = a->unsafe == entry ? NULL : a->unsafe;
    held_forget(a, entry);
    a->next_n = entry->n;
    unfolded_hides(a->unfolded, a->place, entry->n);
    appender_mark_all_done(a, entry, err);
    entry_release(entry);
    return true;
}

static bool is_late(const struct storage_job *job, int64_t now_ms)
{
    return job->deadline_ms <= now_ms;
}

static bool all_late(const struct log_entry *entry, int64_t now_ms)
{
    const struct storage_job *job = entry->jobs;
    while (job != NULL && is_late(job, now_ms)) {
        job = job->next;
    }
    return job == NULL;
}

bool appender_has_jobs(const struct appender *a)
{
    bool any = a->done.first != NULL;
    for (const struct log_entry *e = a->unacknowledged; e != NULL && !any; e = e->next) {
        any = e->jobs != NULL;
    }
    return any;
}

/* The deadline of @job is over, and it is not known whether the job counts. */
static void answer_unknown(
    struct appender *a, const struct log_entry *entry, struct storage_job *job)
{
    if (entry->state == ENTRY_ANSWERED) {
        (void)snprintf(job->detail, sizeof(job->detail),
            "Redis has it, but too few replicas have acknowledged it in time");
    }
    mark_done(a, job, STORAGE_UNKNOWN);
}

/* Answer the jobs of @entry whose deadlines are over.  Returns the earliest deadline of the others.
 */
static int64_t answer_late_jobs(struct appender *a, struct log_entry *entry, int64_t now_ms)
{
    int64_t due_ms = INT64_MAX;
    struct storage_job **at = &entry->jobs;
    while (*at != NULL) {
        struct storage_job *job = *at;
        if (is_late(job, now_ms)) {
            *at = job->next;
            answer_unknown(a, entry, job);
        } else {
            due_ms = job->deadline_ms < due_ms ? job->deadline_ms : due_ms;
            at = &job->next;
        }
    }
    return due_ms;
}

int64_t appender_answer_late(struct appender *a, int64_t now_ms)
{
    int64_t due_ms = INT64_MAX;
    while (a->last != NULL && a->last->state == ENTRY_WAITING && all_late(a->last, now_ms) &&
           appender_give_up_last(a, STORAGE_LATE)) {
    }
    for (struct log_entry *e = a->unacknowledged; e != NULL; e = e->next) {
        int64_t entry_due_ms = answer_late_jobs(a, e, now_ms);
        due_ms = entry_due_ms < due_ms ? entry_due_ms : due_ms;
    }
    appender_answer_done(a);
    return due_ms;
}

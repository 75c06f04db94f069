/* submit.c - hands a job to the threads that do it: writers, readers, senders or the rollup. */
#include <sched.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/fetch.h"
#include "storage/log/chunk.h"
#include "storage/storage.h"
#include "storage/storage_state.h"

/* The core that this thread runs on.  Each core has its own counters of hot pages, so threads
 * seldom wait for each other. */
static unsigned this_core(void)
{
    int core = sched_getcpu();
    return core < 0 ? 0 : (unsigned)core;
}

/* Hash the names, and make a chunk of the events.  The caller's thread does that, because there are
 * many callers and one writer.  @periods has all secrets that the events need. */
static enum storage_err make_chunk(
    struct storage *s, struct storage_job *job, const struct period_list *periods)
{
    const struct write_job *write = &job->u.write;
    const struct identity_keys keys = {.secret = atomic_load(&s->core.secret),
        .rotation = s->core.config.rotation,
        .periods = periods->known,
        .n_periods = periods->n_known,
        .no_addresses = !s->core.config.addresses};
    struct buffer chunk;
    if (keys.secret == NULL) {
        return STORAGE_DOWN;
    }
    buffer_init(&chunk);
    if (!chunk_write(&chunk, write->events, write->n, &keys, write->ticket)) {
        buffer_release(&chunk);
        return STORAGE_NOMEM;
    }
    storage_job_free_chunk(job); /* the job may have the chunk of an earlier write */
    job->chunk = (struct slice){chunk.p, chunk.n};
    job->cost = write->n > 0 ? write->n : 1;
    return STORAGE_OK;
}

/* Hand a write with its chunk to the writer.  If the writer does not take the job, the chunk is
 * freed. */
static enum storage_err send_write(struct storage *s, struct storage_job *job)
{
    enum storage_err err = writers_submit(s->writers, job);
    if (err != STORAGE_OK) {
        storage_job_free_chunk(job);
    }
    return err;
}

/* Make the chunk of a write, and hand the write to the guard or to the writer.  @periods has all
 * secrets that the events need. */
static enum storage_err submit_hashed(
    struct storage *s, struct storage_job *job, const struct period_list *periods)
{
    const struct write_job *write = &job->u.write;
    enum storage_err err = make_chunk(s, job, periods);
    if (err != STORAGE_OK) {
        return err;
    }
    hot_pages_writes(s->hot, this_core(), monotonic_ms(), write->events, write->n);
    job_was_read(job);
    if (s->guard != NULL && write->n_charges > 0) {
        guard_submit(s->guard, job);
        return STORAGE_OK;
    }
    return send_write(s, job);
}

/* Put into @job the pages that this process knows itself.  They are the answer if the other
 * processes cannot be asked. */
static enum storage_err begin_hot_pages(struct storage *s, struct hot_pages_job *job)
{
    job->n = 0;
    return hot_pages_list(s->hot, monotonic_ms(), SIZE_MAX, &job->pages, &job->n, &job->absent)
               ? STORAGE_OK
               : STORAGE_NOMEM;
}

static bool find_periods(struct storage *s, const struct write_job *write, struct period_list *ret)
{
    return period_secrets_find(&s->core.period_secrets, s->core.config.rotation,
        redis_clock_ms(&s->core.clock), write->events, write->n, ret);
}

/* The secrets of the periods of @job were fetched; or they were not, and @err says why. */
static void submit_fetched(void *data, struct storage_job *job, enum storage_err err)
{
    struct storage *s = data;
    struct period_list list = {0};
    if (err == STORAGE_OK && !find_periods(s, &job->u.write, &list)) {
        err = STORAGE_NOMEM;
    }
    if (err == STORAGE_OK) { /* if a secret has ended since then, the client tries again */
        err = list.n_missing > 0 ? STORAGE_DOWN : submit_hashed(s, job, &list);
    }
    period_list_release(&list);
    if (err != STORAGE_OK) {
        job_done(job, err);
    }
}

static enum storage_err submit_write(struct storage *s, struct storage_job *job)
{
    struct period_list list;
    enum storage_err err = STORAGE_NOMEM;
    fetch_ahead(&s->core, s->readers);
    if (deletions_refuse(&s->core.deletions, job->u.write.events, job->u.write.n,
            redis_clock_ms(&s->core.clock))) {
        return STORAGE_DELETING;
    }
    if (find_periods(s, &job->u.write, &list)) {
        err = list.n_missing > 0 ? fetch_periods(s->readers, job, &list, submit_fetched, s)
                                 : submit_hashed(s, job, &list);
    }
    period_list_release(&list);
    return err;
}

/* Does @job add to a filter of a site that is being deleted?  A site's filters are deleted with
 * it. */
static bool fills_filter_of_deleted(struct storage *s, const struct storage_job *job)
{
    const struct filter_job *filter = &job->u.filter;
    return job->op == STORAGE_FILTER_WRITE && filter->action != FILTER_DROP &&
           deletions_refuse_site(&s->core.deletions, filter->site, redis_clock_ms(&s->core.clock));
}

/* Count the pages that @job asks for by name as read, for the list of hot pages.  Pages of a set or
 * of a list are not counted. */
static void count_reads(struct storage *s, const struct storage_job *job)
{
    if (job->op == STORAGE_COUNT) {
        const struct count_job *count = &job->u.count;
        hot_pages_reads(
            s->hot, this_core(), monotonic_ms(), count->asked.site, count->pages, count->n_pages);
    } else if (job->op == STORAGE_OVERLAP) {
        const struct overlap_job *overlap = &job->u.overlap;
        struct slice pages[2];
        size_t n = 0;
        for (size_t i = 0; i < 2; i++) {
            if (overlap->sides[i].page.n > 0) {
                pages[n++] = overlap->sides[i].page;
            }
        }
        hot_pages_reads(s->hot, this_core(), monotonic_ms(), overlap->asked.site, pages, n);
    }
}

/* Hand @job to the readers, or a probe to the prober. */
static enum storage_err submit_read(struct storage *s, struct storage_job *job)
{
    enum storage_err err = STORAGE_OK;
    if (fills_filter_of_deleted(s, job)) {
        return STORAGE_DELETING;
    }
    count_reads(s, job);
    (void)readers_submit(job->op == STORAGE_PROBE ? s->prober : s->readers, job, &err);
    return err;
}

bool storage_send(void *data, struct storage_job *job, enum storage_err *ret_err)
{
    struct storage *s = data;
    if (job->op != STORAGE_WRITE) {
        return limit_senders_submit(s->limits, job, ret_err);
    }
    *ret_err = writers_submit(s->writers, job);
    return *ret_err == STORAGE_OK;
}

void storage_submit(struct storage *s, struct storage_job *job)
{
    enum storage_err err = STORAGE_OK;
    job->detail[0] = '\0';
    if (job->op == STORAGE_HOT_PAGES) {
        err = begin_hot_pages(s, &job->u.hot);
    }
    err = err == STORAGE_OK ? core_refuses(&s->core) : err;
    if (err != STORAGE_OK) {
        job_done(job, err);
        return;
    }
    if (job->op != STORAGE_PROBE && atomic_load(&s->core.refusing)) {
        err = STORAGE_DOWN;
    } else if (job->op == STORAGE_LIMIT || job->op == STORAGE_LIMIT_RESET) {
        (void)limit_senders_submit(s->limits, job, &err);
    } else if (job->op == STORAGE_ROLLUP_RUN) {
        err = s->rollup == NULL ? STORAGE_REFUSED : STORAGE_OK;
        if (err == STORAGE_OK) {
            (void)rollup_submit(s->rollup, job, &err);
        }
    } else if (job->op != STORAGE_WRITE) {
        err = submit_read(s, job);
    } else if (job->u.write.n == 0 && job->u.write.keyed == NULL) {
        job_done(job, STORAGE_OK);
        return;
    } else if (atomic_load(&s->core.lacks_replicas)) {
        err = STORAGE_ALONE;
    } else {
        err = submit_write(s, job);
    }
    if (err != STORAGE_OK) {
        job_done(job, err);
    }
}

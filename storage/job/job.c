#include "storage/job/job.h"

#include <stdlib.h>

void counted_keys_release(struct counted_key **keys, size_t *n)
{
    for (size_t i = 0; i < *n; i++) {
        free((*keys)[i].key);
    }
    free(*keys);
    *keys = NULL;
    *n = 0;
}

static void release_set(void **resolved)
{
    free(*resolved);
    *resolved = NULL;
}

void job_was_read(struct storage_job *job)
{
    if (job->u.write.read != NULL) {
        job->u.write.read(job);
    }
}

void storage_job_free_chunk(struct storage_job *job)
{
    free((void *)(uintptr_t)job->chunk.p);
    job->chunk = (struct slice){NULL, 0};
}

void storage_job_release(struct storage_job *job)
{
    storage_job_free_chunk(job);
    switch (job->op) {
    case STORAGE_COUNT:
        counted_keys_release(&job->u.count.asked.keys, &job->u.count.asked.n_keys);
        release_set(&job->u.count.set.resolved);
        free(job->u.count.points);
        job->u.count.points = NULL;
        job->u.count.n_points = 0;
        break;
    case STORAGE_ACTIVE_USERS:
        arena_release(&job->u.active_users.arena);
        break;
    case STORAGE_PAGES:
        counted_keys_release(&job->u.pages.asked.keys, &job->u.pages.asked.n_keys);
        release_set(&job->u.pages.set.resolved);
        arena_release(&job->u.pages.arena);
        break;
    case STORAGE_OVERLAP:
        counted_keys_release(&job->u.overlap.asked.keys, &job->u.overlap.asked.n_keys);
        counted_keys_release(&job->u.overlap.asked_b.keys, &job->u.overlap.asked_b.n_keys);
        release_set(&job->u.overlap.sides[0].set.resolved);
        release_set(&job->u.overlap.sides[1].set.resolved);
        break;
    case STORAGE_SEEN:
        release_set(&job->u.seen.set.resolved);
        break;
    case STORAGE_PAGE_SET_PUT:
    case STORAGE_PAGE_SET_GET:
        release_set(&job->u.page_set.resolved);
        break;
    case STORAGE_SITES:
        arena_release(&job->u.sites.arena);
        break;
    case STORAGE_CLUSTER:
        free(job->u.cluster.servers);
        job->u.cluster.servers = NULL;
        break;
    case STORAGE_HOT_PAGES:
        hot_pages_release(job->u.hot.pages, job->u.hot.n);
        job->u.hot.pages = NULL;
        job->u.hot.n = 0;
        break;
    case STORAGE_FIRST:
        arena_release(&job->u.first.arena);
        break;
    case STORAGE_DELETE_SITE:
    case STORAGE_DELETE_PAGES:
    case STORAGE_DELETION:
    case STORAGE_DELETIONS:
    case STORAGE_WRITE:
    case STORAGE_PROBE:
    case STORAGE_LIMIT:
    case STORAGE_LIMIT_RESET:
    case STORAGE_ACTIVITY:
    case STORAGE_FREQUENCY:
    case STORAGE_USER_DAYS:
    case STORAGE_FORGET_USER:
    case STORAGE_TAKE_BACK:
    case STORAGE_PAGE_SET_DELETE:
    case STORAGE_ROLLUP_STATUS:
    case STORAGE_ROLLUP_RUN:
    case STORAGE_FILTER_READ:
    case STORAGE_FILTER_WRITE:
    case STORAGE_LOOK_KEY:
    case STORAGE_PERIODS:
        break; /* nothing is owned */
    }
}

void job_done(struct storage_job *job, enum storage_err err)
{
    job->err = err;
    job->done(job);
}

void jobs_done(struct storage_job *list, enum storage_err err)
{
    while (list != NULL) {
        struct storage_job *next = list->next; /* after done() the job may be gone */
        job_done(list, err);
        list = next;
    }
}

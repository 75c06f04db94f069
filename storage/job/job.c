/* job/job.c - what a job owns at its end. */
#include <stdlib.h>

#include "storage/read/listed_keys.h"
#include "storage/storage.h"

static void release_set(void **resolved)
{
    free(*resolved);
    *resolved = NULL;
}

void storage_job_release(struct storage_job *job)
{
    switch (job->op) {
    case STORAGE_COUNT:
        counted_keys_release(&job->u.count.keys, &job->u.count.n_keys);
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
    case STORAGE_WRITE:
    case STORAGE_PROBE:
    case STORAGE_LIMIT:
    case STORAGE_LIMIT_RESET:
    case STORAGE_ACTIVITY:
    case STORAGE_USER_DAYS:
    case STORAGE_FORGET_USER:
    case STORAGE_PAGE_SET_DELETE:
    case STORAGE_ROLLUP_STATUS:
    case STORAGE_ROLLUP_RUN:
    case STORAGE_FILTER_READ:
    case STORAGE_FILTER_WRITE:
    case STORAGE_CLAIM:
    case STORAGE_RELEASE:
        break; /* nothing is owned */
    }
}

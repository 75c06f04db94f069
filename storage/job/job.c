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

static void release_count(struct storage_job *job)
{
    struct count_job *count = &job->u.count;
    counted_keys_release(&count->asked.keys, &count->asked.n_keys);
    release_set(&count->set.resolved);
    free(count->points);
    count->points = NULL;
    count->n_points = 0;
}

static void release_pages(struct storage_job *job)
{
    struct pages_job *pages = &job->u.pages;
    counted_keys_release(&pages->asked.keys, &pages->asked.n_keys);
    release_set(&pages->set.resolved);
    arena_release(&pages->arena);
}

static void release_overlap(struct storage_job *job)
{
    struct overlap_job *overlap = &job->u.overlap;
    counted_keys_release(&overlap->asked.keys, &overlap->asked.n_keys);
    counted_keys_release(&overlap->asked_second.keys, &overlap->asked_second.n_keys);
    release_set(&overlap->sides[0].set.resolved);
    release_set(&overlap->sides[1].set.resolved);
}

static void release_cluster(struct storage_job *job)
{
    free(job->u.cluster.servers);
    job->u.cluster.servers = NULL;
}

static void release_hot_pages(struct storage_job *job)
{
    hot_pages_release(job->u.hot.pages, job->u.hot.n);
    job->u.hot.pages = NULL;
    job->u.hot.n = 0;
}

static void release_active_users(struct storage_job *job)
{
    arena_release(&job->u.active_users.arena);
}

static void release_seen(struct storage_job *job)
{
    release_set(&job->u.seen.set.resolved);
}

static void release_page_set(struct storage_job *job)
{
    release_set(&job->u.page_set.resolved);
}

static void release_sites(struct storage_job *job)
{
    arena_release(&job->u.sites.arena);
}

static void release_first(struct storage_job *job)
{
    arena_release(&job->u.first.arena);
}

/* What frees the results of an operation, and what storage keeps in its question.  The operations
 * without a line own nothing of the kind. */
static void (*const releases[STORAGE_OPS])(struct storage_job *job) = {
    [STORAGE_COUNT] = release_count,
    [STORAGE_ACTIVE_USERS] = release_active_users,
    [STORAGE_PAGES] = release_pages,
    [STORAGE_OVERLAP] = release_overlap,
    [STORAGE_PAGE_SET_PUT] = release_page_set,
    [STORAGE_PAGE_SET_GET] = release_page_set,
    [STORAGE_SITES] = release_sites,
    [STORAGE_SEEN] = release_seen,
    [STORAGE_CLUSTER] = release_cluster,
    [STORAGE_FIRST] = release_first,
    [STORAGE_HOT_PAGES] = release_hot_pages,
};

void storage_job_release(struct storage_job *job)
{
    storage_job_free_chunk(job);
    if (releases[job->op] != NULL) {
        releases[job->op](job);
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

/* job.h - one thing that is asked of storage: what, until when, and how it ended.
 *
 * Layer: storage, public: plain values.
 *
 * The caller fills op, deadline_ms, the member of `u` that belongs to op, done and data, and hands
 * the job to storage_submit().  From then on the job and everything that it points to belong to
 * storage.  Storage writes the results and err, and calls done(), exactly once.  Then the job
 * belongs to the caller again.
 */
#ifndef STORAGE_JOB_JOB_H
#define STORAGE_JOB_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/job/cluster_job.h"
#include "storage/job/count_job.h"
#include "storage/job/deletion_job.h"
#include "storage/job/error.h"
#include "storage/job/filter_job.h"
#include "storage/job/first_job.h"
#include "storage/job/hot_page.h"
#include "storage/job/limit.h"
#include "storage/job/periods_job.h"
#include "storage/job/probe_job.h"
#include "storage/job/request_key.h"
#include "storage/job/rollup_job.h"
#include "storage/job/seen_job.h"
#include "storage/job/users_job.h"
#include "storage/job/window_job.h"
#include "storage/job/write_job.h"

/* The writer's thread does STORAGE_WRITE, senders do the limits.  The rollup's thread does
 * STORAGE_ROLLUP_RUN, reader threads do the others. */
enum storage_op {
    STORAGE_WRITE,
    STORAGE_COUNT,
    STORAGE_PROBE,
    STORAGE_LIMIT,
    STORAGE_LIMIT_RESET,
    STORAGE_ACTIVITY,
    STORAGE_FREQUENCY,
    STORAGE_ACTIVE_USERS,
    STORAGE_USER_DAYS,
    STORAGE_FORGET_USER,
    STORAGE_TAKE_BACK,
    STORAGE_PAGES,
    STORAGE_OVERLAP,
    STORAGE_PAGE_SET_PUT,
    STORAGE_PAGE_SET_GET,
    STORAGE_PAGE_SET_DELETE,
    STORAGE_SITES,
    STORAGE_ROLLUP_STATUS,
    STORAGE_ROLLUP_RUN,   /* done after all that is over by now is rolled up, by any process */
    STORAGE_FILTER_READ,  /* FILTER_INFO, FILTER_CHECK */
    STORAGE_FILTER_WRITE, /* the other actions of a filter_job */
    STORAGE_SEEN,
    STORAGE_LOOK_KEY, /* was an Idempotency-Key used? */
    STORAGE_PERIODS,  /* storage's own: see periods_job.h */
    STORAGE_CLUSTER,
    STORAGE_FIRST, /* after a STORAGE_WRITE with a ticket */
    STORAGE_HOT_PAGES,
    STORAGE_DELETE_SITE,
    STORAGE_DELETE_PAGES,
    STORAGE_DELETION,  /* how far the deletion of a site is */
    STORAGE_DELETIONS, /* storage's own: which sites are being deleted (core/deletions.h) */
};
#define STORAGE_OPS 31

struct storage_job {
    enum storage_op op;
    int64_t deadline_ms; /* CLOCK_MONOTONIC */
    union {
        struct write_job write;
        struct count_job count;
        struct limit_job limit;
        struct limit_reset_job limit_reset;
        struct activity_job activity;
        struct frequency_job frequency;
        struct active_users_job active_users;
        struct user_days_job user_days;
        struct forget_user_job forget_user;
        struct take_back_job take_back;
        struct pages_job pages;
        struct overlap_job overlap;
        struct page_set_job page_set;
        struct sites_job sites;
        struct rollup_job rollup;
        struct cluster_job cluster;
        struct filter_job filter;
        struct seen_job seen;
        struct hot_pages_job hot;
        struct probe_job probe;
        struct request_key *look_key;
        struct periods_job periods;
        struct first_job first;
        struct deletion_job deletion;
    } u;
    void (*done)(struct storage_job *job);
    void *data;       /* the caller's */
    bool more_follow; /* the caller submits more, and calls storage_flush() right behind them */

    enum storage_err err; /* valid from done() on */
    char detail[96];      /* for some errors: the reason, or what is known; else "" */

    /* Private to storage from submit to done. */
    struct storage_job *next;
    size_t cost;        /* what the job counts for in queues that bound what waits: events, or 1 */
    struct slice chunk; /* of a write: its events as bytes (log/chunk.h), owned */
    uint64_t question;  /* see question_hash() */
    int64_t arrived_us; /* CLOCK_MONOTONIC */
    int64_t after;      /* begun only when all that was acknowledged before is safe; 0: at once */
    /* The job is put off, and will run again, because its answer could still be lost: see
     * core/standing.h.  CLOCK_MONOTONIC; held_to_ms 0: it is not put off. */
    int64_t held_from_ms, held_to_ms;
};

/* Free what the job and its results own, after done().  Harmless on a zeroed job that was never
 * submitted, and a second time. */
void storage_job_release(struct storage_job *job);

/* Free the chunk of a write before the job is done.  For storage alone. */
void storage_job_free_chunk(struct storage_job *job);

/* Tell the owner of a write that its events are not needed any more: storage has made bytes of
 * them.  For storage alone. */
void job_was_read(struct storage_job *job);

/* End a job, or all jobs of a list, with @err: calls done().  For storage alone. */
void job_done(struct storage_job *job, enum storage_err err);
void jobs_done(struct storage_job *list, enum storage_err err);

/* Free a list of keys, and set *keys to NULL and *n to 0. */
void counted_keys_release(struct counted_key **keys, size_t *n);

#endif

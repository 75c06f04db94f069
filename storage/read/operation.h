/* operation.h - what a reader thread can be asked to do: one line an operation.
 *
 * Layer: storage.  Functions that run operations lie in the folders above this one; their files
 * include their declarations from here.  storage/operations.c makes a table from the list.
 *
 * A new operation is a function in one of those folders and a line in the list.
 */
#ifndef STORAGE_READ_OPERATION_H
#define STORAGE_READ_OPERATION_H

#include "storage/read/settled.h"
#include "storage/session/dispatcher.h"
#include "storage/session/session.h"

/* What belongs to one reader thread. */
struct reader {
    struct core *core;
    struct session session;       /* connected, when an operation runs */
    struct dispatcher dispatcher; /* in a cluster: the session uses this one */
    struct settled settled;

    /* What an operation keeps between its jobs, such as large arrays; the index is an enum
     * storage_op.  The operation makes the memory, and reader_release() frees it. */
    struct reader_scratch {
        void *p; /* owned; NULL: nothing so far */
        void (*free)(void *p);
    } scratch[STORAGE_OPS];
};

/* Close the reader's connections, and free what operations kept. */
void reader_release(struct reader *reader);

/* Do @job, by its deadline.  *ret_lost, which is false before, becomes true if the connection is
 * lost or in an unknown state: the caller closes it. */
typedef enum storage_err operation_run_fn(
    struct reader *reader, struct storage_job *job, bool *ret_lost);

/* Would the answer to @a be the answer to @b?  Both jobs are of this operation. */
typedef bool operation_same_fn(const struct storage_job *a, const struct storage_job *b);

/* A hash of the question: equal for the same question, and hardly ever for another.  Never 0. */
typedef uint64_t operation_hash_fn(const struct storage_job *job);

/* Give @to, which asks the same, a copy of the result of @from.  False: no memory. */
typedef bool operation_share_fn(const struct storage_job *from, struct storage_job *to);

/* Make @to ask what @from asks, with its own copy of the bytes in @arena, and without a result.
 * False: the question or the answer is too long to be remembered, or no memory. */
typedef bool operation_own_fn(
    const struct storage_job *from, struct storage_job *to, struct arena *arena);

/* What must be true of every event that was acknowledged before the operation came. */
enum operation_after {
    AFTER_NOTHING,
    AFTER_COUNTED, /* the event is counted, whichever process took it: settled.h */
    AFTER_ITSELF,  /* the event is counted, or waits in memory: the operation itself sees to that */
    AFTER_SAFE,    /* the same, and Redis cannot lose events that this process would append again */
};

/* The list: each operation is ALONE or SHARED.
 *
 *     again              after a lost connection the job is done once more: that does no harm
 *     after              enum operation_after
 *     same, hash, share  SHARED: jobs that ask the same and wait at the same time are answered
 *                        together
 *     own                SHARED: an answer is remembered while nothing changes (answers.h) */
#define OPERATIONS(ALONE, SHARED)                                                                  \
    /* operation, run, again, after; same, hash, share, own */                                     \
    SHARED(STORAGE_COUNT, count_run, true, AFTER_COUNTED, count_same, count_hash, count_share,     \
        count_own)                                                                                 \
    SHARED(STORAGE_PAGES, pages_run, true, AFTER_COUNTED, pages_same, pages_hash, pages_share,     \
        pages_own)                                                                                 \
    ALONE(STORAGE_OVERLAP, overlap_run, true, AFTER_COUNTED)                                       \
    SHARED(STORAGE_SITES, sites_run, true, AFTER_COUNTED, sites_same, sites_hash, sites_share,     \
        sites_own)                                                                                 \
    ALONE(STORAGE_PAGE_SET_PUT, page_set_put_run, true, AFTER_NOTHING)                             \
    ALONE(STORAGE_PAGE_SET_GET, page_set_get_run, true, AFTER_NOTHING)                             \
    ALONE(STORAGE_PAGE_SET_DELETE, page_set_delete_run, true, AFTER_NOTHING)                       \
    SHARED(STORAGE_ACTIVITY, activity_run, true, AFTER_COUNTED, activity_same, activity_hash,      \
        activity_share, activity_own)                                                              \
    SHARED(STORAGE_FREQUENCY, frequency_run, true, AFTER_COUNTED, frequency_same, frequency_hash,  \
        frequency_share, frequency_own)                                                            \
    ALONE(STORAGE_ACTIVE_USERS, active_users_run, true, AFTER_COUNTED)                             \
    ALONE(STORAGE_USER_DAYS, user_days_run, true, AFTER_COUNTED)                                   \
    ALONE(STORAGE_FORGET_USER, forget_user_run, true, AFTER_SAFE)                                  \
    ALONE(STORAGE_TAKE_BACK, take_back_run, true, AFTER_SAFE)                                      \
    ALONE(STORAGE_FIRST, first_run, true, AFTER_COUNTED)                                           \
    ALONE(STORAGE_FILTER_READ, filter_run, true, AFTER_NOTHING)                                    \
    ALONE(STORAGE_FILTER_WRITE, filter_run, false, AFTER_NOTHING)                                  \
    ALONE(STORAGE_SEEN, seen_run, true, AFTER_ITSELF)                                              \
    ALONE(STORAGE_ROLLUP_STATUS, rollup_status_run, true, AFTER_NOTHING)                           \
    ALONE(STORAGE_CLUSTER, cluster_status_run, false, AFTER_NOTHING)                               \
    ALONE(STORAGE_LOOK_KEY, look_key_run, true, AFTER_NOTHING)                                     \
    ALONE(STORAGE_HOT_PAGES, hot_pages_run, true, AFTER_NOTHING)                                   \
    ALONE(STORAGE_PERIODS, periods_run, true, AFTER_NOTHING)                                       \
    ALONE(STORAGE_DELETE_SITE, deletion_start_run, true, AFTER_COUNTED)                            \
    ALONE(STORAGE_DELETE_PAGES, deletion_start_run, true, AFTER_SAFE)                              \
    ALONE(STORAGE_DELETION, deletion_look_run, true, AFTER_COUNTED)                                \
    ALONE(STORAGE_DELETIONS, deletions_run, false, AFTER_NOTHING)                                  \
    ALONE(STORAGE_PROBE, probe_run, false, AFTER_NOTHING)

#define OPERATION_DECLARE_ALONE(op, run, again, after) operation_run_fn run;
#define OPERATION_DECLARE_SHARED(op, run, again, after, same, hash, share, own)                    \
    operation_run_fn run;                                                                          \
    operation_same_fn same;                                                                        \
    operation_hash_fn hash;                                                                        \
    operation_share_fn share;                                                                      \
    operation_own_fn own;
OPERATIONS(OPERATION_DECLARE_ALONE, OPERATION_DECLARE_SHARED)

#endif

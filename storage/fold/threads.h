/* threads.h - counts a batch in all partitions of one server, on several threads.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * Redis carries out one transaction at a time, and a thread has much to compute before the next
 * one.  So the partitions of a large batch are shared out to threads, each with a connection of its
 * own.  In a cluster each server has one thread: see lanes.h.
 */
#ifndef STORAGE_FOLD_THREADS_H
#define STORAGE_FOLD_THREADS_H

#include "storage/fold/transaction.h"

#define FOLD_STEP_MS       5000 /* no step takes so long on a Redis that lives */
#define THREADS_SILENCE_MS 3000 /* a connection is taken for dead that is silent for so long */

/* While Redis carries out the transaction of one thread, the other one computes.  A third one
 * counts at most 5 % more arrays a second on two processors, and its scratch memory is 5 MB. */
#define FOLD_THREADS 2

struct fold_threads {
    struct core *core;
    struct fold_worker {
        struct session session; /* not of the first one, which uses the round's.. */
        struct heads heads;     /* ..nor these */
        struct transaction *tx;
    } workers[FOLD_THREADS];
    /* Called, by any of the threads, when a transaction was done; NULL: nobody is. */
    void (*moved)(void *data);
    void *moved_data;
};

/* False: out of memory; the caller releases all the same. */
bool threads_init(struct fold_threads *threads, struct core *core, const struct redis_look *look,
    struct seen_fold *seen_fold, struct shared_memory *shared) MUST_CHECK;

/* The connections are closed: nothing is known any more. */
void threads_forget(struct fold_threads *threads);
void threads_release(struct fold_threads *threads);

/* Connect.  False: it failed. */
bool threads_connect(struct core *core, struct session *session) MUST_CHECK;

/* Count @batch over @session and further connections to the same server.  @heads, @ret_log and
 * @ret_err are as those of transaction_run().  @trim: the log in the batch that is cut when all is
 * counted; -1: none.  A failure leaves some partitions that have counted the batch. */
enum fold_end threads_count(struct fold_threads *threads, struct session *session,
    const struct batch *batch, struct heads *heads, int trim, uint32_t *ret_log,
    enum storage_err *ret_err) MUST_CHECK;

#endif

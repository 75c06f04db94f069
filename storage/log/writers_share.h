/* writers_share.h - what the writers of a process share.
 *
 * Layer: storage, private to the writers.  Thread-safe as its members say.
 */
#ifndef STORAGE_LOG_WRITERS_SHARE_H
#define STORAGE_LOG_WRITERS_SHARE_H

#include "storage/core/prepare.h"
#include "storage/job/job.h"

/* Zeroed but for the functions and the lock. */
struct writers_share {
    struct prepared_data prepared;
    _Atomic bool is_prepared, is_preparing; /* the data; prepared: it was once */
    /* Of a cluster: some servers were away then; all are there now, and the rest is to be looked
     * at, by whoever connects next. */
    _Atomic bool is_partial, is_rest_due;
    bool prepared_once;        /* whoever prepares, at a time one, has this and the above */
    pthread_mutex_t news_lock; /* around what is told of connections, and: */
    bool has_told;             /* that there is a connection */
    /* Called on a writer's thread. */
    void (*changed)(void *data); /* what writer_away() or writer_is_connected() says */
    /* Of a cluster: take over a job of which nothing was sent, because its server is away.  False:
     * not taken. */
    bool (*elsewhere)(void *data, struct storage_job *job);
    void *data;
};

#endif

/* error.h - how a job can end.
 *
 * Layer: storage, public: plain values.  Thread-safe: the only state is one flag.
 *
 * A job is one thing that is asked of storage (job.h).  For a job that writes, the error also says
 * whether Redis may hold something of it: the comments in the table do.
 */
#ifndef STORAGE_JOB_ERROR_H
#define STORAGE_JOB_ERROR_H

#include <stdbool.h>

/*        name             text */
#define STORAGE_ERRORS(X)                                                                          \
    X(STORAGE_OK, "ok")                                                                            \
    X(STORAGE_FULL, "the queue is full")                             /* nothing was sent */        \
    X(STORAGE_DOWN, "Redis cannot be reached")                       /* nothing was sent */        \
    X(STORAGE_LATE, "Redis did not take it in time")                 /* nothing was sent */        \
    X(STORAGE_REFUSED, "Redis refuses writes")                       /* nothing was applied */     \
    X(STORAGE_OOM, "Redis is out of memory")                         /* nothing was applied */     \
    X(STORAGE_DISK, "Redis's disk is full: it refuses writes")       /* nothing was applied */     \
    X(STORAGE_ALONE, "too few replicas acknowledge what is written") /* nothing was sent */        \
    X(STORAGE_CONFIG, "the data is kept with other settings")        /* nothing was applied */     \
    X(STORAGE_FOREIGN, "this is the data of another installation")   /* nothing was applied */     \
    X(STORAGE_STATE_LOST, "a partition has lost its state")          /* nothing was applied */     \
    X(STORAGE_BEHIND, "what was acknowledged is not counted yet")    /* of a question */           \
    X(STORAGE_UNKNOWN, "Redis did not answer in time") /* all of it now, later or never */         \
    X(STORAGE_NOT_KEPT, "the window is not kept at this precision")                                \
    X(STORAGE_TOO_BROAD, "the question needs too many keys")                                       \
    X(STORAGE_LAGGING, "the rollups lag behind: as yet the question needs too many keys")          \
    X(STORAGE_NO_SET, "there is no such page set")                                                 \
    X(STORAGE_LIMITED, "over the limit")             /* nothing was sent */                        \
    X(STORAGE_DELETING, "the site is being deleted") /* nothing was sent */                        \
    X(STORAGE_TOO_FINE, "the step is finer than what is kept of the window")                       \
    X(STORAGE_TOO_MANY, "the series would have too many points")                                   \
    X(STORAGE_SHUTDOWN, "the service is stopping") /* nothing was sent */                          \
    X(STORAGE_NOMEM, "out of memory")              /* nothing was sent */

enum storage_err {
#define X(name, text) name,
    STORAGE_ERRORS(X)
#undef X
};

/* The text of an error, static: for answers and for operators. */
const char *storage_err_text(enum storage_err err);

/* Note whether the Redis of this machine is away because its disk is full.  The text of
 * STORAGE_DOWN names the full disk from now on, or names it no more. */
void storage_err_note_disk(bool disk_full);

#endif

/* deletion_job.h - delete a site, or pages of one; how far that is.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_DELETION_JOB_H
#define STORAGE_JOB_DELETION_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

/* What is deleted. */
struct deletion_target {
    struct slice site;
    struct slice page; /* or how pages begin; empty: the whole site */
    bool is_prefix;
};

/* STORAGE_DELETE_SITE and STORAGE_DELETE_PAGES write down that it is to be deleted.  The process
 * that leads the rollups does it, in bounded steps.  STORAGE_DELETION reads how far that is. */
struct deletion_job {
    struct deletion_target target;

    /* Written by storage. */
    bool exists;   /* the site has had events; else nothing was asked for */
    bool deleting; /* it is being deleted */
    double done;   /* how much of that is done, 0 to 1: it only grows */
};

#endif

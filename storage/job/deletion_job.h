/* deletion_job.h - delete a site, or pages of one, and ask how far the deletion is.
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
    struct slice page; /* empty: the whole site */
    bool is_prefix;    /* all pages that begin with `page` */
};

/* STORAGE_DELETE_SITE and STORAGE_DELETE_PAGES write down that the target is to be deleted.  The
 * process that leads the rollups deletes it, in bounded steps.  STORAGE_DELETION reads how far that
 * is. */
struct deletion_job {
    struct deletion_target target;

    /* Written by storage. */
    bool exists;   /* the site has had events; if not, no deletion was written down */
    bool deleting; /* the target is being deleted */
    double done;   /* the share of the deletion that is done, 0 to 1: it only grows */
};

#endif

/* sweep.h - finds everything of a site, or of pages, in all partitions, and takes it away.
 *
 * Layer: storage.  Belongs to the thread that does the deletion.
 *
 * Keys are found by SCAN, some at a time, and taken away some at a time, by scripts that refuse a
 * fencing token which is less than the greatest that the partition has seen, and a deletion of
 * which the partition does not know.  So no command holds Redis for long, and a process that does
 * not lead any more does nothing.
 *
 * A sweep finds what is there from its beginning to its end.  What is made meanwhile may stay, so a
 * deletion sweeps until a sweep finds nothing.  Where several servers share the partitions, a
 * server is searched once for each of its partitions.
 */
#ifndef STORAGE_DELETION_SWEEP_H
#define STORAGE_DELETION_SWEEP_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/job/deletion_job.h"
#include "storage/read/pipeline.h"

struct deletion_sweep {
    unsigned partition;        /* the partition that is searched now */
    char cursor[REPLY_CURSOR]; /* of that partition's SCAN; "": the SCAN is over */
    uint64_t changes;          /* of the dispatcher, when the sweep began */
    uint64_t n_found;          /* keys and fields that were taken away so far */
};

/* Begin a sweep anew, over the connections of @session. */
void sweep_begin(struct deletion_sweep *sweep, const struct session *session);

enum sweep_result {
    SWEEP_GOES_ON,
    SWEEP_DONE,     /* all partitions were searched */
    SWEEP_FENCED,   /* another process leads */
    SWEEP_UNMARKED, /* a partition does not know of the deletion: it has gone back */
    SWEEP_FAULT,    /* see the pipeline's err; the step may be done again */
};

/* What the scripts compare with what a partition knows. */
struct sweep_order {
    int64_t token;  /* the leader's */
    const char *id; /* the deletion's */
};

/* Do one step, in which some thousand keys are looked at. */
enum sweep_result sweep_step(struct deletion_sweep *sweep, struct core *core, struct pipeline *p,
    const struct deletion_target *target, const struct sweep_order *order);

/* How much of the sweep is done, 0 to 1. */
double sweep_share(const struct deletion_sweep *sweep, const struct core *core);

#endif

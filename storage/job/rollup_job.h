/* rollup_job.h - how far the rollups have come, and which process leads them.
 *
 * Layer: storage, public: plain values.
 *
 * Rollups sum minutes up into hours, hours into days, days into months.  One of all processes is
 * the leader, and does them.  A watermark says up to which instant the buckets of a level are
 * complete.
 */
#ifndef STORAGE_JOB_ROLLUP_JOB_H
#define STORAGE_JOB_ROLLUP_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/time/bucket.h"

/* Result of STORAGE_ROLLUP_STATUS and STORAGE_ROLLUP_RUN. */
struct rollup_job {
    bool leader;                 /* this process leads */
    char holder[128];            /* the process that leads, "host:pid"; "": none at this moment */
    int64_t fencing_token;       /* the last number drawn by a leader; 0: none yet */
    int64_t watermark_s[LEVELS]; /* the earliest of all partitions; [LEVEL_MINUTE] is unused */
    int64_t lag_s[LEVELS];       /* from the watermark to the end of the last bucket that is over */
};

#endif

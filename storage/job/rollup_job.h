/* rollup_job.h - how far the rollups have come, and whose they are.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_ROLLUP_JOB_H
#define STORAGE_JOB_ROLLUP_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/time/bucket.h"

/* Result of STORAGE_ROLLUP_STATUS and STORAGE_ROLLUP_RUN. */
struct rollup_job {
    bool leader;                 /* this process leads */
    char holder[128];            /* who leads, "host:pid"; "": nobody at this moment */
    int64_t fencing_token;       /* the last one that was drawn; 0: none yet */
    int64_t watermark_s[LEVELS]; /* the least over the partitions; [LEVEL_MINUTE] unused */
    int64_t lag_s[LEVELS];       /* by which it lies behind the last complete bucket */
};

#endif

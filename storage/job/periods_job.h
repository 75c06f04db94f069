/* periods_job.h - have Redis hold a secret for some rotation periods.
 *
 * Layer: storage, private to it: no caller of storage_submit() needs this.
 */
#ifndef STORAGE_JOB_PERIODS_JOB_H
#define STORAGE_JOB_PERIODS_JOB_H

#include <stddef.h>
#include <stdint.h>

/* Input of STORAGE_PERIODS: where the periods begin (job/config.h).  Afterwards their secrets are
 * in core/period_secrets.h. */
struct periods_job {
    const int64_t *starts;
    size_t n;
};

#endif

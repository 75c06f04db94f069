/* probe_job.h - does Redis take writes?
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_PROBE_JOB_H
#define STORAGE_JOB_PROBE_JOB_H

#define PROBE_DEGRADED 400 /* bytes, with the NUL */

/* Result of STORAGE_PROBE.  STORAGE_OK: some server takes writes. */
struct probe_job {
    /* The servers of a cluster that take no writes: "ADDRESS: WHY" each, with '\n' between, cut to
     * fit; last a sentence about the first partition that has lost its state.  "": all is well. */
    char degraded[PROBE_DEGRADED];
};

#endif

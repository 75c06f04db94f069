/* write_job.h - events to be counted, and what the ingestion guard says of them.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_WRITE_JOB_H
#define STORAGE_JOB_WRITE_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/claim.h"
#include "storage/job/event.h"
#include "storage/job/limit.h"

/* What a request costs one of those that are limited. */
struct guard_charge {
    struct slice who; /* the token's name, the site, or the address: 4 or 16 bytes, network order */
    int64_t n;        /* events */
};

/* In order of how bad they are. */
enum guard_verdict {
    GUARD_ADMITTED, /* and taken */
    GUARD_ASK,      /* Redis must be asked: submit the job with the charges */
    GUARD_REFUSED,
    GUARD_FAILED, /* no memory */
};

/* Input and result of STORAGE_WRITE.  Events are counted for their page and their site. */
struct write_job {
    struct event *events;
    size_t n;
    /* Granted by the guard before anything is written; else STORAGE_LIMITED.  n_charges 0: they
     * were granted before (storage_guard_try), or there is no guard. */
    const struct guard_charge *charges;
    size_t n_charges;
    struct limit_state guard; /* with charges: what the guard said; written by storage */
    struct claim *claim;      /* NULL: a request without an Idempotency-Key */
};

#endif

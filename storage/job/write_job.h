/* write_job.h - events to be counted, and what the ingestion guard says of them.
 *
 * Layer: storage, public: plain values.
 *
 * The ingestion guard is a rate limit on events, one for each token, address or site.  A request
 * with events carries charges, which say whose limits it uses and how much of each.
 */
#ifndef STORAGE_JOB_WRITE_JOB_H
#define STORAGE_JOB_WRITE_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/event.h"
#include "storage/job/limit.h"
#include "storage/job/request_key.h"

/* What a request takes of one limit. */
struct guard_charge {
    struct slice who; /* a token's name, a site, or an address: 4 or 16 bytes in network order */
    int64_t n;        /* events */
};

/* What the guard says of a request, from the best verdict to the worst. */
enum guard_verdict {
    GUARD_ADMITTED, /* the charges were taken */
    GUARD_ASK,      /* Redis must be asked: submit the job with the charges */
    GUARD_REFUSED,
    GUARD_FAILED, /* out of memory */
};

struct storage_job;

/* Input and result of STORAGE_WRITE.  Each event is counted for its page and for its site. */
struct write_job {
    struct event *events; /* n of them */
    size_t n;
    /* NULL, or called at most once, by the thread that has the job, when storage has made bytes of
     * the events and needs them no more.  So the caller can free them early: a request may wait for
     * long, and what it was decoded from is several times as large as those bytes. */
    void (*read)(struct storage_job *job);
    /* The guard must grant these charges before anything is written; if it does not, the error is
     * STORAGE_LIMITED.  n_charges 0: storage_guard_try() granted them, or there is no guard. */
    const struct guard_charge *charges;
    size_t n_charges;
    struct limit_state guard;        /* written by storage, with charges: what the guard said */
    struct request_key *keyed;       /* NULL: a request without an Idempotency-Key */
    const struct key_digest *ticket; /* of first_job.h; NULL: the request does not ask */
};

#endif

/* claim.h - a request with an Idempotency-Key: what identifies it, and what became of it.
 *
 * Layer: storage, public: plain values.  A claim belongs to its request.
 *
 * A client may send a request twice, because the first answer got lost.  With an Idempotency-Key
 * the request is executed once, and the second one gets the first one's answer.  To "claim" a key
 * is to be allowed to execute its request.  The protocol is described in
 * storage/write/PROTOCOL.md, "With an Idempotency-Key", and is model-checked in Promela:
 * tests/model/direct.pml as it is built, idem.pml the way by a claim on two nodes too.
 *
 * A request with a key is two or three jobs, all with the same struct claim:
 *
 *   STORAGE_CLAIM    asks whether the key is free.  CLAIM_MINE: go on, and take gen_ms as the time
 *                    of arrival
 *   STORAGE_WRITE    applies the events, in each partition once, whichever attempt does it.  Then
 *                    stores `answer` with the key.  STORAGE_OK: both are durable
 *   STORAGE_RELEASE  instead of STORAGE_WRITE: the answer is no 202 and nothing was sent, so the
 *                    key is forgotten
 *
 * A STORAGE_WRITE that applied nothing releases the key itself.  One whose outcome is unknown
 * leaves the key to its lease.  A request that asks again after the lease takes the key over, with
 * the first try's gen_ms, and completes what is missing.
 *
 * A small request may go straight to STORAGE_WRITE, with `direct` set and gen_ms its time of
 * arrival.  If all of it fits into one script and the key is free, its events and its answer are
 * written together, in one round trip.  If it comes back as STORAGE_OK with CLAIM_FIRST, nothing is
 * known to be applied, and the request takes the way above.  CLAIM_DONE says there that it was
 * applied after all.
 *
 * `in_doubt` means that parts of the request may have been applied: it was sent over a connection
 * that was lost, or its key was taken over from another attempt.  A claim that fails says nothing
 * more.  Such a key must not be released.  Its record alone stops a copy that is still under way,
 * and a direct request does not look at what another attempt has left in the partitions.
 *
 * The caller owns the claim: zeroed, then key and body set.  It keeps the claim until the last job
 * is done.  claim_release() frees what CLAIM_REPLAY or CLAIM_DONE brought.
 */
#ifndef STORAGE_JOB_CLAIM_H
#define STORAGE_JOB_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define CLAIM_TTL_MS  INT64_C(86400000)  /* a key lives so long from its first use on */
#define CLAIM_KEEP_MS (2 * CLAIM_TTL_MS) /* its record in Redis lives longer, to be sure */

/* How long after its claim an attempt may write, and how long its markers in the partitions live
 * once the answer is stored: longer than any copy of its scripts can come. */
#define CLAIM_ATTEMPT_MS INT64_C(600000)
#define CLAIM_MARKER_MS  INT64_C(900000)

/* 128 bits. */
struct claim_digest {
    uint8_t bytes[16];
};

enum claim_outcome {
    CLAIM_MINE,       /* the caller executes the request, for the first time or taken over */
    CLAIM_REPLAY,     /* the key was used before, with this body: the answer is there */
    CLAIM_OTHER_BODY, /* the key was used before, with another body */
    CLAIM_IN_FLIGHT,  /* another attempt executes the request just now */
    CLAIM_DONE,       /* this very attempt was executed: the answer is there */
    CLAIM_FIRST,      /* of a direct STORAGE_WRITE: not known to be applied; claim first */
};

struct claims;
struct storage_job;

struct claim {
    struct claim_digest key, body;

    /* Results of STORAGE_CLAIM. */
    enum claim_outcome outcome;
    int64_t gen_ms; /* CLAIM_MINE: the first try's time of arrival, Redis's clock */
    char *replay;   /* CLAIM_REPLAY, CLAIM_DONE: the first answer; owned by the claim */
    size_t replay_n;

    bool direct;         /* see above */
    bool in_doubt;       /* see above */
    struct slice answer; /* for STORAGE_WRITE: the text to store; lives until the job is done */

    /* Private to storage. */
    struct claim_digest owner; /* names this attempt */
    int64_t until_ms;          /* from then on no part may be applied; Redis's clock */
    uint64_t epoch;            /* of the connection that claimed */
    struct claims *claims;     /* the thread that claimed */
    /* Set once the key is claimed.  Called when a STORAGE_WRITE has ended with job->err.  True: the
     * claims' thread takes the job, to store its answer or to release its key, and will end it.
     * False: the job is done. */
    bool (*settle)(struct storage_job *job);
    uint32_t unit; /* the request's number in the flush at hand */
    int step;
};

/* The digest of @key as @owner used it.  @owner is the hash of a token; empty: the space that all
 * clients share.  BLAKE2b-128, because clients choose keys, perhaps with malice. */
struct claim_digest claim_key(struct slice owner, struct slice key);

/* The digest of a request's body and of @how the body is read: of all that decides the outcome.
 * XXH3-128, because a client that makes bodies collide fools only itself. */
struct claim_digest claim_body(uint64_t how, struct slice body);

/* Write @digest as 32 hexadecimal digits and a NUL. */
#define CLAIM_TEXT 33
void claim_print(const struct claim_digest *digest, char text[CLAIM_TEXT]);

/* Free the answer that storage has brought.  The claim can be used again. */
void claim_release(struct claim *claim);

#endif

/* claim.h - a request with an Idempotency-Key: what identifies it, and what became of it.
 *
 * Layer: storage.  Source: ARCHITECTURE.md, "With an Idempotency-Key"; model-checked in
 * Promela: tests/model/direct.pml as it is built, idem.pml the way by a claim on two nodes too.
 *
 * A request with a key passes through storage in two or three jobs, all with the same struct claim:
 *
 *   STORAGE_CLAIM    who has the key?  CLAIM_MINE: go on, with gen_ms as the time of arrival
 *   STORAGE_WRITE    apply the events, each partition's share once whoever tries, and then store
 *                    `answer` with the key; STORAGE_OK means that both are durable
 *   STORAGE_RELEASE  instead of WRITE: the answer is no 202 and nothing was sent; forget the key
 *
 * A STORAGE_WRITE that applied nothing releases the key itself.  One whose outcome is unknown
 * leaves it to its lease: who asks again when that is over takes the request over, with the first
 * try's gen_ms, and completes what is missing.
 *
 * A small request may go straight to STORAGE_WRITE, with `direct` set and gen_ms its time of
 * arrival: if all of it fits into one script and nobody has used the key, its events and its answer
 * are written together, in one round trip.  If it comes back as STORAGE_OK with CLAIM_FIRST it
 * takes the way above (CLAIM_DONE says there that it was applied after all, when no answer came).
 * With `in_doubt` it was sent over a connection that was lost: as long as nobody has been asked it
 * may have been applied, and a claim that fails says nothing of that; and its record must stay,
 * for a copy that is still under way is stopped by it alone (no STORAGE_RELEASE).  A claim that was
 * taken over is the same: who had it may have applied parts, and their markers are nothing that a
 * request that comes directly would look at.
 *
 * The caller owns the claim (zeroed, then key and body set) and keeps it until its last job is
 * done; claim_release frees what CLAIM_REPLAY brought.
 */
#ifndef STORAGE_JOB_CLAIM_H
#define STORAGE_JOB_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define CLAIM_TTL_MS  INT64_C(86400000)  /* a key lives so long from its first use on */
#define CLAIM_KEEP_MS (2 * CLAIM_TTL_MS) /* and its record in Redis so long, to be sure */

/* An attempt may write for so long after it has claimed, and not any more; what it leaves behind in
 * the partitions then outlives every copy of its scripts by a third. */
#define CLAIM_ATTEMPT_MS INT64_C(600000)
#define CLAIM_MARKER_MS                                                                            \
    INT64_C(900000) /* a part's marker lives so long once the answer is stored */

/* 128 bits. */
struct claim_digest {
    uint8_t bytes[16];
};

enum claim_outcome {
    CLAIM_MINE,       /* it is the caller's to execute, for the first time or taken over */
    CLAIM_REPLAY,     /* executed before, with this body: the answer is there */
    CLAIM_OTHER_BODY, /* used before, with another body */
    CLAIM_IN_FLIGHT,  /* somebody executes it just now */
    CLAIM_DONE,       /* this very request was executed: the answer is there */
    CLAIM_FIRST,      /* of a direct STORAGE_WRITE: not applied so far as is known; claim first */
};

struct claims;
struct storage_job;

struct claim {
    struct claim_digest key, body;

    /* Results of STORAGE_CLAIM. */
    enum claim_outcome outcome;
    int64_t gen_ms; /* CLAIM_MINE: when it was first tried, Redis's clock */
    char *replay;   /* CLAIM_REPLAY, CLAIM_DONE: the first answer, owned */
    size_t replay_n;

    bool direct;         /* see above */
    bool in_doubt;       /* see above */
    struct slice answer; /* for STORAGE_WRITE: what is stored; lives until the job is done */

    /* Private to storage. */
    struct claim_digest owner; /* this attempt */
    int64_t until_ms;          /* no part may be applied from then on, Redis's clock */
    uint64_t epoch;            /* of the connection that claimed */
    struct claims *claims;     /* who claimed */
    /* Theirs, once they have: a STORAGE_WRITE came to job->err.  True: they took it, to store its
     * answer or to release its key, and it will be done by them; false: it is done. */
    bool (*settle)(struct storage_job *job);
    uint32_t unit; /* its number in the flush at hand */
    int step;
};

/* @key as its owner (the hash of a token; empty: the one common space) used it.  BLAKE2b-128: keys
 * are users' text and may be chosen with malice. */
struct claim_digest claim_key(struct slice owner, struct slice key);

/* A request's body and @how it is to be read (whatever else decides the outcome).  XXH3-128: a
 * client that makes bodies collide only fools itself. */
struct claim_digest claim_body(uint64_t how, struct slice body);

/* 32 hexadecimal digits and a NUL. */
#define CLAIM_TEXT 33
void claim_print(const struct claim_digest *digest, char text[CLAIM_TEXT]);

void claim_release(struct claim *claim);

#endif

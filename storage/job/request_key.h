/* request_key.h - a request with an Idempotency-Key: what identifies it, and what became of it.
 *
 * Layer: storage, public: plain values.  A request_key belongs to its request.
 *
 * A client may send a request twice, because the first answer got lost.  With an Idempotency-Key
 * the request is counted once, and the second one gets the first one's answer.  Storage keeps a
 * record of each key for at least a day: the digest of the body, and the answer.  The record is
 * written in the same step as the request itself, so neither is ever there without the other.
 *
 *   STORAGE_WRITE     counts the request if its key is free, and stores `answer` with the key
 *   STORAGE_LOOK_KEY  looks whether the key was used, and changes nothing
 *
 * Both write `outcome` where the job ends with STORAGE_OK.  A STORAGE_WRITE that ends with
 * STORAGE_UNKNOWN is in Redis now, will be, or never will: only the same key, sent again, tells.
 */
#ifndef STORAGE_JOB_REQUEST_KEY_H
#define STORAGE_JOB_REQUEST_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

/* A digest of 128 bits. */
struct key_digest {
    uint8_t bytes[16];
};

enum key_outcome {
    KEY_MINE,       /* STORAGE_WRITE: the request counts, with this answer */
    KEY_FREE,       /* STORAGE_LOOK_KEY: the key was not used */
    KEY_REPLAY,     /* the key was used before, with this body: the first answer is in `replay` */
    KEY_OTHER_BODY, /* the key was used before, with another body */
};

struct request_key {
    struct key_digest key, body;
    struct slice answer; /* of STORAGE_WRITE: the text to store; lives until the job is done */

    /* Written by storage. */
    size_t in_entry; /* its place among the requests with a key in its entry of the log */
    enum key_outcome outcome;
    char *replay; /* KEY_REPLAY: replay_n bytes, owned */
    size_t replay_n;
};

/* The digest of @key as @owner used it.  @owner is the hash of a token; empty: the space that all
 * clients share.  BLAKE2b-128, because clients choose keys, perhaps with malice. */
struct key_digest request_key_digest(struct slice owner, struct slice key);

/* The key of a request that is its own key: the digest of @body and of @how the body is read, as
 * @owner sent it.  No key that a client can choose is equal to it. */
struct key_digest request_key_of_body(struct slice owner, uint64_t how, struct slice body);

/* The digest of a request's body and of @how the body is read: of all that decides the outcome.
 * XXH3-128, because a client that makes bodies collide fools only itself. */
struct key_digest request_body_digest(uint64_t how, struct slice body);

/* Write @digest as 32 hexadecimal digits and a NUL. */
#define KEY_DIGEST_TEXT 33
void key_digest_print(const struct key_digest *digest, char text[KEY_DIGEST_TEXT]);

/* Free the answer in `replay`.  Harmless if there is none. */
void request_key_release(struct request_key *key);

#endif

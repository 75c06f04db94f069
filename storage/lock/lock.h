/* lock.h - a lock kept in Redis: a key that holds its owner's random token for the time of a lease.
 *
 * Layer: storage.  A server belongs to one thread.
 * Source: redis.io, "Distributed Locks with Redis": SET NX PX with a random token (acquire.lua).
 * A process prolongs the lock (renew.lua), or deletes it (release.lua), only if the key still holds
 * that process's token.  One Redis may keep the lock, or several by the rules of redlock.h.
 *
 * A question is sent first and its answer awaited later, so that several servers are asked at once.
 * A server that does not answer in time is disconnected: its late answer must not be taken for that
 * to the next question.  Whether the server did what it was asked is then unknown.
 */
#ifndef STORAGE_LOCK_LOCK_H
#define STORAGE_LOCK_LOCK_H

#include "storage/base/compiler.h"
#include "storage/redis/endpoint.h"
#include "storage/redis/redis.h"
#include "storage/redis/resolvers.h"
#include "storage/redis/script.h"
#include "storage/schema/key.h"

#define LOCK_LEASE_MS 10000
#define LOCK_RENEW_MS (LOCK_LEASE_MS / 3)
#define LOCK_TOKEN    160 /* bytes of a token: 32 hex digits, a blank, the holder's name, NUL */

/* A lock as one process wants it. */
struct lock {
    struct key key;
    char token[LOCK_TOKEN]; /* new for each attempt: lock_draw */
    int64_t lease_ms;
};

/* Draw a token: 128 random bits, and @name (cut to fit), which shows operators the holder. */
void lock_draw(struct lock *lock, const char *name);

/* The holder's name in @token, a part of it; all of @token if it is none of ours. */
struct slice lock_holder(struct slice token);

/* A Redis that keeps locks. */
struct lock_server {
    struct redis_endpoint endpoint;
    struct redis *redis;    /* NULL: not connected */
    struct redis_look look; /* set by the owner, for the next connection; zeroed: none */
    struct script_digests scripts;
    bool asked;    /* an answer is awaited */
    char why[160]; /* why the last question was not answered, in words; "": it was answered */
    /* Called with an error reply, which may say that another server has the lock.  NULL: not
     * called. */
    void (*refused)(void *data, const struct reply *reply);
    void *refused_data;
};

/* What became of a question. */
enum lock_answer {
    LOCK_MINE,    /* the lock was acquired, prolonged or released */
    LOCK_OTHERS,  /* another process has the lock */
    LOCK_GONE,    /* no process has the lock: it ran out, or the data was lost */
    LOCK_UNKNOWN, /* no answer, or a refusal */
};

/* Why a lock is not held any more, in words; static. */
const char *lock_answer_text(enum lock_answer answer);

/* Connect unless connected, until @deadline_ms (CLOCK_MONOTONIC).  False: the server cannot be
 * reached, and server->why says why. */
bool lock_connect(struct lock_server *server, struct resolvers *resolvers, int64_t deadline_ms);
void lock_disconnect(struct lock_server *server); /* harmless if it is not connected */

/* Send a question.  A server that is not connected is not asked, and its answer is LOCK_UNKNOWN.
 * @fence: the key of the fencing tokens, which lies beside the data, or NULL.  The token that is
 * drawn is greater than @floor.  @wish: a key that a renewal looks for, or NULL. */
void lock_ask_acquire(
    struct lock_server *server, const struct lock *lock, const struct key *fence, int64_t floor);
void lock_ask_renew(struct lock_server *server, const struct lock *lock, const struct key *wish);
void lock_ask_release(struct lock_server *server, const struct lock *lock);

/* *ret_number of a lock that was renewed: the key @wish is there, by which a process asks for a
 * pass. */
#define LOCK_RENEWED_WISHED 2

/* Await the answer to the question that was asked.  *ret_number tells more:
 *
 *   question   answer         *ret_number
 *   acquire    LOCK_MINE      the fencing token (1 without @fence)
 *   acquire    LOCK_OTHERS    milliseconds that are left of the other process's lease
 *   renew      LOCK_MINE      1, or LOCK_RENEWED_WISHED
 */
enum lock_answer lock_await(
    struct lock_server *server, int64_t deadline_ms, int64_t *ret_number) MUST_CHECK;

#endif

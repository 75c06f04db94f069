/* lock.h - a lock on one Redis: a key that holds somebody's random token for the time of a lease.
 *
 * Layer: storage.  A server belongs to one thread.
 * Source: redis.io, "Distributed Locks with Redis": SET NX PX with a random token; prolonged
 * (acquire.lua, renew.lua, release.lua) only by who still has it, and given back by
 * compare-and-delete.  One Redis, or several by the rules of redlock.h.
 *
 * A question is sent first and its answer awaited later, so that several servers are asked at once.
 * A server that does not answer in time is disconnected: a late answer must not be taken for the
 * next one's.  Whether it did what it was asked is unknown then.
 */
#ifndef STORAGE_LOCK_LOCK_H
#define STORAGE_LOCK_LOCK_H

#include "storage/redis/redis.h"
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

/* Draw a token: 128 random bits, and @name (cut to fit) so that people see who it is. */
void lock_draw(struct lock *lock, const char *name);

/* The holder's name in a token; the whole if it is none of ours. */
struct slice lock_holder(struct slice token);

/* A Redis that keeps locks. */
struct lock_server {
    struct redis_endpoint endpoint;
    struct redis *redis;    /* NULL: not connected */
    struct redis_look look; /* its owner's, for the next connection; 0: none */
    struct script_digests scripts;
    bool asked; /* an answer is awaited */
};

/* What became of a question. */
enum lock_answer {
    LOCK_MINE,    /* acquired, prolonged, released */
    LOCK_OTHERS,  /* somebody else has it */
    LOCK_GONE,    /* nobody has it: it ran out, or the data was lost */
    LOCK_UNKNOWN, /* no answer, or a refusal */
};

/* Connect unless connected. */
bool lock_connect(struct lock_server *server, int64_t deadline_ms);
void lock_disconnect(struct lock_server *server); /* harmless if it is not connected */

/* Ask; a server that is not connected is not asked, and answers LOCK_UNKNOWN.
 * @fence: the key of the fencing tokens, which lies beside the data, or NULL; the token drawn will
 * be greater than @floor.  @wish: a key that a renewal looks for, or NULL. */
void lock_ask_acquire(
    struct lock_server *server, const struct lock *lock, const struct key *fence, int64_t floor);
void lock_ask_renew(struct lock_server *server, const struct lock *lock, const struct key *wish);
void lock_ask_release(struct lock_server *server, const struct lock *lock);

/* *ret_number: acquired: the fencing token (1 without @fence); LOCK_OTHERS to that: milliseconds
 * that the other one has left; renewed: 2 if there is a wish. */
enum lock_answer lock_await(struct lock_server *server, int64_t deadline_ms, int64_t *ret_number);

#endif

/* robots_cache.h - known robots, with a memory of the user agents that were seen.
 *
 * Layer: handlers, pure.  Thread-safe: threads share a cache without a lock.
 *
 * Most page views come from few user agents.  To find an agent in the memory is cheaper than to
 * look through it, the longer the agent the more.  The memory is a table of ROBOTS_CACHE_SLOTS
 * words; an agent has one place, by its digest, and takes it from the agent that was there.  So a
 * flood of made-up agents costs others no more than a look through theirs, and takes no memory.
 *
 * The digest is SipHash-2-4 under a secret key.  62 bits of it are kept.  Without the key nobody
 * can make an agent that is taken for another; one of 4e18 is by chance.
 */
#ifndef HANDLERS_TEXT_ROBOTS_CACHE_H
#define HANDLERS_TEXT_ROBOTS_CACHE_H

#include <stdatomic.h>

#include "handlers/text/robots.h"

#define ROBOTS_CACHE_BITS      12
#define ROBOTS_CACHE_SLOTS     (1u << ROBOTS_CACHE_BITS)
#define ROBOTS_CACHE_KEY_BYTES 16

struct robots_cache {
    struct robots robots;
    unsigned char key[ROBOTS_CACHE_KEY_BYTES];
    /* The digest but for its two lowest bits; they are 2, and 3 for a robot.  0: empty. */
    _Atomic uint64_t seen[ROBOTS_CACHE_SLOTS];
};

/* Remember nothing.  @key is secret and random. */
void robots_cache_init(
    struct robots_cache *cache, const unsigned char key[static ROBOTS_CACHE_KEY_BYTES]);

/* robots_known() of @user_agent. */
bool robots_cache_known(struct robots_cache *cache, struct slice user_agent) MUST_CHECK;

#endif

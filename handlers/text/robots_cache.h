/* robots_cache.h - known robots, with a memory of the user agents that were seen.
 *
 * Layer: handlers, pure.  Thread-safe: threads share a cache without a lock.
 *
 * Most page views come from few user agents.  To find an agent in the memory is cheaper than to
 * look for names in the agent, above all if the agent is long.  The memory is a table of
 * ROBOTS_CACHE_SLOTS words.  An agent has one slot, by its digest, and replaces the agent that was
 * there.  So a flood of made-up agents takes no memory; the worst that it does to other agents is
 * that they are looked through again.
 *
 * The digest is SipHash-2-4 under a secret key.  62 bits of the digest are kept.  Without the key
 * nobody can make an agent that is taken for another; by chance one of 4e18 is.
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
    /* A slot has the digest of an agent, whose two lowest bits are replaced: by 3 for a robot, else
     * by 2.  0: the slot is empty. */
    _Atomic uint64_t seen[ROBOTS_CACHE_SLOTS];
};

/* Begin with an empty memory.  @key is secret and random. */
void robots_cache_init(
    struct robots_cache *cache, const unsigned char key[static ROBOTS_CACHE_KEY_BYTES]);

/* What robots_known() says of @user_agent. */
bool robots_cache_known(struct robots_cache *cache, struct slice user_agent) MUST_CHECK;

#endif

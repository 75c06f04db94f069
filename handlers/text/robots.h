/* robots.h - known robots: programs that visit pages and say so in their user agent.
 *
 * Layer: handlers, pure.  Thread-safe: a table does not change once it is made.
 *
 * The names are made from what crawlers say of themselves.  Most have a word of their kind: "bot"
 * at the end of a word, "crawl", "spider", or a "+http" address for complaints.  The list has the
 * names of those that have no such word.  Two kinds of programs are not in it: those that anybody
 * may send a request with, as curl or a language's HTTP library, and browsers that another program
 * drives.
 *
 * Source of the names, and what the list is measured by: the user agents collected by
 * github.com/monperrus/crawler-user-agents (MIT), commit 7c7f9f25 of 2026-07-02, without its tags
 * http-library and browser-automation.  Found of these: 1654 of 1990, and 911 of the 988 that call
 * themselves Mozilla.  A robot that looks like any browser cannot be found by its name.
 *
 * A user agent is looked through once, whatever the number of names: at each byte the last three
 * bytes are hashed, and only a name that ends in these three is compared.  The last bytes of names
 * are taken because they differ where the first are the same, as in google-ads and googleother.
 * Only ROBOTS_LOOKED_AT bytes are looked at, so that a long agent costs no more.  Of the two
 * thousand agents in the real logs that this was tried with the longest has 294 bytes.
 */
#ifndef HANDLERS_TEXT_ROBOTS_H
#define HANDLERS_TEXT_ROBOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define ROBOTS_NAMES   98
#define ROBOTS_BUCKETS 4096  /* a power of two; about 2 % of the buckets have a name */
#define ROBOTS_HASHES  65536 /* a power of two, and a multiple of ROBOTS_BUCKETS */

#define ROBOTS_LOOKED_AT 512 /* bytes of a user agent that are looked at */

/* Where the names are.  Numbers of names count from 1; 0 ends a chain.  `ends` has a bit for each
 * hash that the last bytes of a name have.  About one bit of 650 is set, so for few bytes of a text
 * a bucket is looked at. */
struct robots {
    uint64_t ends[ROBOTS_HASHES / 64];
    uint8_t first[ROBOTS_BUCKETS];
    struct robots_name {
        uint32_t last; /* the last three bytes of the name */
        uint8_t n;     /* length of the name, in bytes */
        uint8_t next;  /* number of the next name in the same bucket */
    } names[ROBOTS_NAMES + 1];
};

/* The last three bytes of a text that ended in @three and goes on with @c.  Each byte has its bit
 * 0x20 set, so that upper and lower case are the same. */
static inline uint32_t robots_shifted(uint32_t three, char c)
{
    return (three << 8 | (unsigned char)c | 0x20) & 0xffffff;
}

/* The hash of three bytes: Knuth's multiplicative hash. */
static inline unsigned robots_hash(uint32_t three)
{
    return (three << 8) * UINT32_C(2654435761) / (UINT32_MAX / ROBOTS_HASHES + 1);
}

/* Does @three have the same hash as the last bytes of a name? */
static inline bool robots_may_end(const struct robots *robots, uint32_t three)
{
    unsigned hash = robots_hash(three);
    return (robots->ends[hash / 64] >> (hash % 64) & 1) != 0;
}

/* Make the table. */
void robots_init(struct robots *robots);

/* Is @user_agent that of a known robot?  An empty one is not. */
bool robots_known(const struct robots *robots, struct slice user_agent) MUST_CHECK;

#endif

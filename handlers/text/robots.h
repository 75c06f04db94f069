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
 * A user agent is looked through once, whatever the number of names: at each byte three bytes are
 * hashed, and only the names that begin with such three bytes are compared.  There is no memory of
 * user agents that were seen, because looking is hardly dearer than finding one in it, and because
 * an agent with a chosen hash could speak for another.
 */
#ifndef HANDLERS_TEXT_ROBOTS_H
#define HANDLERS_TEXT_ROBOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define ROBOTS_NAMES   98
#define ROBOTS_BUCKETS 4096 /* a power of two; 2 % are taken */

/* Where the names are.  Numbers of names count from 1; 0 ends a chain. */
struct robots {
    uint8_t first[ROBOTS_BUCKETS];
    uint8_t next[ROBOTS_NAMES + 1];
};

/* Make the table. */
void robots_init(struct robots *robots);

/* Is it the user agent of a known robot?  An empty one is not.  Only the first 1024 bytes are
 * looked at. */
bool robots_known(const struct robots *robots, struct slice user_agent) MUST_CHECK;

#endif

/* bots.h - known bots: programs that visit pages and say so in their user agent.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * Only page views that browsers send themselves are judged (/pixel.gif, /api/event).  A backend
 * that posts events has decided by itself what to count.
 *
 * The table is made from what crawlers say of themselves.  Most have a word of their kind: "bot" at
 * the end of a word, "crawl", "spider", or a "+http" address for complaints.  The table has the
 * names of those that have no such word.  Two kinds of programs are not in it: those that anybody
 * may send a request with, as curl or a language's HTTP library, and browsers that another program
 * drives.
 *
 * Source of the names, and what the table is measured by: the user agents collected by
 * github.com/monperrus/crawler-user-agents (MIT), commit 7c7f9f25 of 2026-07-02, without its tags
 * http-library and browser-automation.  Found of these: 1654 of 1990, and 911 of the 988 that call
 * themselves Mozilla.  A bot that looks like any browser cannot be found by its name.
 */
#ifndef HANDLERS_INGEST_BOTS_H
#define HANDLERS_INGEST_BOTS_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* Is it the user agent of a known bot?  An empty one is not. */
bool bots_known(struct slice user_agent) MUST_CHECK;

#endif

/* bots.h - programs that visit pages and say so in their user agent.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * Asked only where the address is the client's own (/pixel.gif, /api/event): who posts events from
 * a backend has decided what to count.
 *
 * The table is made from what crawlers say of themselves: a word of their kind ("bot" at a word's
 * end, "crawl", "spider", a "+http" address for complaints), and the names of those that have none
 * of these.  Programs that anybody may send a request with, as curl or a language's HTTP library,
 * are nobody's robot, and neither is a browser that is driven by another program.
 *
 * Source of the names, and what the table is measured by: the user agents collected by
 * github.com/monperrus/crawler-user-agents (MIT), commit 7c7f9f25 of 2026-07-02, without its tags
 * http-library and browser-automation.  Found of these: 1654 of 1990, and 911 of the 988 that call
 * themselves Mozilla.  What looks like any browser cannot be found by its name.
 */
#ifndef HANDLERS_INGEST_BOTS_H
#define HANDLERS_INGEST_BOTS_H

#include <stdbool.h>

#include "storage/base/slice.h"

bool bots_known(struct slice user_agent);

#endif

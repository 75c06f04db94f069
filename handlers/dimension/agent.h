/* agent.h - with what a page was looked at: browser, system and kind of device, by the user agent.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A user agent is a list of products, and nearly all of them name several browsers.  So it is
 * looked through once, and each word that is known sets a bit.  The bits are judged then, the most
 * special one first: what says Edg/ and Chrome/ and Safari/ is Edge.
 *
 * There is no memory of user agents that were seen: to look through one takes as long as to hash it
 * with a secret, which such a memory would need so that no agent can speak for another.
 *
 * Source of the words: RFC 9110 section 10.1.5, and what the browsers send (MDN, "User-Agent",
 * "Browser detection using the user agent", read 2026-07).
 */
#ifndef HANDLERS_DIMENSION_AGENT_H
#define HANDLERS_DIMENSION_AGENT_H

#include "storage/base/slice.h"

/* Static texts; empty where nothing is known. */
struct agent_parts {
    struct slice browser; /* "Chrome", "Edge", "Firefox", "Safari".. */
    struct slice os;      /* "Android", "Chrome OS", "iOS", "Linux", "macOS", "Windows".. */
    struct slice device;  /* "desktop", "mobile", "tablet", "tv", "console" */
};

/* What @agent says.  Only the first ROBOTS_LOOKED_AT bytes are looked at (robots.h). */
struct agent_parts agent_read(struct slice agent);

#endif

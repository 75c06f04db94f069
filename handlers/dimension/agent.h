/* agent.h - what a page was looked at with: browser, system and kind of device, by the user agent.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A user agent is a list of products, and most user agents name several browsers.  So an agent is
 * looked through once, and each known word sets a bit.  Then the bits are judged, the most special
 * one first: an agent with Edg/ and Chrome/ and Safari/ is Edge.
 *
 * There is no memory of the agents that were seen.  It would need a hash with a secret, so that no
 * agent can be made that is taken for another, and such a hash takes as long as looking through the
 * agent.
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

/* What @agent says.  Only the first ROBOTS_LOOKED_AT bytes are looked at (text/robots.h). */
struct agent_parts agent_read(struct slice agent);

#endif

/* plausible_event.h - the event that Plausible's trackers send, decoded.
 *
 * Layer: handlers, pure: no I/O, no clock.  Thread-safe.
 *
 * Source: Plausible's Events API (plausible.io/docs/events-api, read 2026-07-24) and what its
 * trackers send (npm plausible-tracker 0.3.9, @plausible-analytics/tracker 0.4.6).  A JSON object,
 * whatever its Content-Type says, with long or short names:
 *
 *     name, n      "pageview"; any other is a custom event ("engagement" too)
 *     url, u       absolute; the page is its path, as it is written, with the fragment where
 *     hashMode, h  is 1 or true
 *     domain, d    the site; several with commas between
 *
 * Other members (referrer, props, revenue, width, engagement's figures) are not looked at.  A
 * member given twice: the last holds; under both its names: the long one.
 */
#ifndef HANDLERS_INGEST_PLAUSIBLE_EVENT_H
#define HANDLERS_INGEST_PLAUSIBLE_EVENT_H

#include <stdbool.h>
#include <stddef.h>

#include "storage/base/slice.h"

#define PLAUSIBLE_DOMAINS_MAX 16
#define PLAUSIBLE_BODY_MAX    65536

/* Zeroed it is empty. */
struct plausible_event {
    bool page_view;
    struct slice page;
    struct slice domains[PLAUSIBLE_DOMAINS_MAX]; /* valid names of sites, each once */
    size_t n_domains;
    char *bytes; /* owned: what the slices point into */
};

/* What is wrong, all static; member is NULL if it is the body. */
struct plausible_fault {
    const char *member, *detail;
};

enum plausible_result { PLAUSIBLE_OK, PLAUSIBLE_FAULT, PLAUSIBLE_NOMEM };

/* Decode @body into @ret; on another result than PLAUSIBLE_OK @ret stays empty.  At most
 * PLAUSIBLE_BODY_MAX bytes. */
enum plausible_result plausible_decode(
    struct slice body, struct plausible_event *ret, struct plausible_fault *ret_fault);

void plausible_release(struct plausible_event *event);

#endif

/* breakdown_by.h - what page views can be broken down by: dimensions, events, sections, properties.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 */
#ifndef HANDLERS_DIMENSION_BREAKDOWN_BY_H
#define HANDLERS_DIMENSION_BREAKDOWN_BY_H

#include "handlers/http/app.h"
#include "storage/base/compiler.h"
#include "storage/job/counted_name.h"

#define BREAKDOWN_BY_FAULT                                                                         \
    "must be source, utm_source, utm_medium, utm_campaign, utm_term, utm_content, browser, os, "   \
    "device, country, language, event, section or prop:NAME"

struct breakdown_by {
    char text[NAME_CLASS_MAX];
    size_t n;     /* the class, see job/counted_name.h: text[0 .. n) */
    bool counted; /* what comes in now is counted by it */
    bool with_uv; /* the site's visitors are, too */
};

/* Read what the values of a site are asked by.  False: it is nothing that is counted, for
 * BREAKDOWN_BY_FAULT. */
bool breakdown_by_read(
    const struct app *app, struct slice site, struct slice by, struct breakdown_by *ret) MUST_CHECK;

#endif

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
    size_t n;     /* text[0 .. n) is the class of the names, see storage/job/counted_name.h */
    bool counted; /* the page views that come in now are counted by such names */
    bool with_uv; /* the visitors are counted by such names, too */
};

/* Read @by, which says what the page views of @site are broken down by.  False: there is no such
 * thing, and BREAKDOWN_BY_FAULT says what there is.  True also where it is not counted. */
bool breakdown_by_read(
    const struct app *app, struct slice site, struct slice by, struct breakdown_by *ret) MUST_CHECK;

#endif

/* url.h - the parts of an absolute URL that page views need.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * The URL is cut, and not judged (RFC 3986, appendix B): nothing is decoded, and a part may hold
 * any bytes.
 */
#ifndef HANDLERS_TEXT_URL_H
#define HANDLERS_TEXT_URL_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* scheme://authority/path?query#fragment; the slices point into the text. */
struct url {
    struct slice scheme;
    struct slice authority; /* host and port */
    struct slice path;      /* with its first slash; empty where there is none */
    struct slice fragment;  /* with its '#'; empty where there is none */
};

/* Cut @text.  False: it is not absolute, that is, does not begin with scheme:// */
bool url_split(struct slice text, struct url *ret) MUST_CHECK;

#endif

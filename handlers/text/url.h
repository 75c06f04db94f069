/* url.h - the parts of an absolute URL that page views need, and its escapes.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A URL is cut, and not judged (RFC 3986, appendix B): nothing is decoded then, and a part may hold
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

/* Write @text without its escapes to @to, which has room for as many bytes: %XX is a byte, '+' a
 * blank if @plus_is_blank, and a bad escape stands for itself.  Returns how many bytes were
 * written. */
size_t url_unescape(struct slice text, bool plus_is_blank, char *to);

#endif

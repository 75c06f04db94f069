/* media_type.h - does a Content-Type name this type?
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_TEXT_MEDIA_TYPE_H
#define HANDLERS_TEXT_MEDIA_TYPE_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* Is @content_type the type @type?  Parameters, and the case of letters, make no difference. */
bool media_type_is(struct slice content_type, const char *type) MUST_CHECK;

#endif

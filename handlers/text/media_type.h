/* media_type.h - what a Content-Type says.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_TEXT_MEDIA_TYPE_H
#define HANDLERS_TEXT_MEDIA_TYPE_H

#include <stdbool.h>

#include "storage/base/slice.h"

/* Is @content_type the type @type, whatever its parameters and the case of its letters? */
bool media_type_is(struct slice content_type, const char *type);

#endif

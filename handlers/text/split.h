/* split.h - a text taken apart: at its beginning, at a separator, at its ends.
 *
 * Layer: handlers, pure.  Thread-safe: no state.  What is returned points into the text.
 */
#ifndef HANDLERS_TEXT_SPLIT_H
#define HANDLERS_TEXT_SPLIT_H

#include "storage/base/slice.h"

/* Does @text begin with @head? */
bool text_begins(struct slice text, struct slice head);

/* Cut the bytes before the first @end off the front of @rest, and that @end, too.  Without an @end
 * these are all bytes. */
struct slice text_until(struct slice *rest, char end);

/* @text without those bytes at both its ends that are one of @blanks. */
struct slice text_trim(struct slice text, const char *blanks);

#endif

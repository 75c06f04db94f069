/* reply_notation.h - a reply of Redis, written as one reads it: ['text', 7, null, !'ERR no', []].
 *
 * For unit tests and fuzz targets.  Strings have no escapes.  The replies live in an arena.
 */
#ifndef TESTS_LIB_REPLY_NOTATION_H
#define TESTS_LIB_REPLY_NOTATION_H

#include "storage/base/arena.h"
#include "storage/redis/reply.h"

/* Read @text.  Blanks and line ends between the parts mean nothing.  NULL: it is no reply in this
 * notation, has more than 10,000 parts or 7 levels, or memory is short. */
const struct reply *reply_read(struct arena *arena, struct slice text);

#endif

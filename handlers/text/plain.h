/* plain.h - texts of plain ASCII: numbers, tokens, media types, what can be printed.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 */
#ifndef HANDLERS_TEXT_PLAIN_H
#define HANDLERS_TEXT_PLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <strings.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* Read @text as a number of decimal digits, at most @max.  Zeros may lead.  False: the text has
 * other bytes or none, or the number is larger; *ret is untouched. */
bool text_number(struct slice text, uint64_t max, uint64_t *ret) MUST_CHECK;

/* Is @text a token of HTTP (RFC 9110 section 5.6.2), as a method or a field's name is? */
bool text_is_token(struct slice text) MUST_CHECK;

/* Is @text printable ASCII without blanks, and not empty? */
bool text_is_graphic(struct slice text) MUST_CHECK;

/* Are @a and @b, of which one has no NUL, equal without regard to the case of ASCII letters? */
static inline bool text_equal_nocase(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

/* Is @text, a Content-Type, the type @type?  Parameters, and the case of letters, make no
 * difference. */
bool text_is_media_type(struct slice text, const char *type) MUST_CHECK;

#endif

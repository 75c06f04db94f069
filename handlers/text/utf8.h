/* utf8.h - UTF-8, checked and written.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * Well-formed is what table 3-7 of the Unicode standard says: no overlong forms, no surrogates,
 * nothing above U+10FFFF.
 */
#ifndef HANDLERS_TEXT_UTF8_H
#define HANDLERS_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define UTF8_MAX 4 /* bytes of the longest sequence */

/* How many bytes has the sequence that begins at @p?  0 if the sequence is not well-formed, or does
 * not end before @end.  @p < @end. */
size_t utf8_sequence(const char *p, const char *end) MUST_CHECK;

/* Is all of @text well-formed? */
bool utf8_valid(struct slice text) MUST_CHECK;

/* How many bytes of @text fit where there is room for @most bytes, so that no character of a
 * well-formed text is cut. */
size_t utf8_fit(struct slice text, size_t most) MUST_CHECK;

/* @text without the byte order mark that it may begin with. */
struct slice utf8_without_mark(struct slice text) MUST_CHECK;

/* Does @text begin with the byte order mark of UTF-16? */
bool utf8_is_utf16(struct slice text) MUST_CHECK;

/* Write @code, a code point that is no surrogate, to @to, which has room for UTF8_MAX bytes.
 * Returns how many bytes were written. */
size_t utf8_put(char *to, uint32_t code);

#endif

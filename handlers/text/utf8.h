/* utf8.h - is it UTF-8?
 *
 * Layer: handlers, pure.  Thread-safe.  Well-formed means table 3-7 of the Unicode standard: no
 * overlong forms, no surrogates, nothing above U+10FFFF.
 */
#ifndef HANDLERS_TEXT_UTF8_H
#define HANDLERS_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define UTF8_MAX 4 /* bytes of the longest sequence */

/* Bytes of the sequence that begins at @p, before @end; 0 if it is not well-formed.  @p < @end. */
size_t utf8_sequence(const char *p, const char *end);

bool utf8_valid(struct slice text);

/* Write @code, a scalar value (no surrogate), to @to, which has room for it; returns its length. */
size_t utf8_put(char *to, uint32_t code);

#endif

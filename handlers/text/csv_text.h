/* csv_text.h - one text as a cell of CSV.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * The format is RFC 4180.  Quotes stand around a text that has a comma, a quote or a line end, and
 * quotes in the text are doubled.  Quotes also stand around a text that has a semicolon or a tab,
 * or a blank at either end.  Where people write 1,5 for one and a half a spreadsheet divides lines
 * at semicolons, and what stands behind a semicolon in a name could be a formula.
 *
 * A text that a spreadsheet would take for a formula gets a ' in front: OWASP's rule against CSV
 * injection.  Such a text begins with = + - @, a tab or a line end, also in their full-width forms.
 */
#ifndef HANDLERS_TEXT_CSV_TEXT_H
#define HANDLERS_TEXT_CSV_TEXT_H

#include <stddef.h>

#include "storage/base/buffer.h"

/* Append @text, @n bytes of UTF-8, as a cell. */
void csv_put_text(struct buffer *out, const char *text, size_t n);

#endif

/* escape.h - text of any origin made safe for one line of a log or a terminal.
 *
 * Layer: service, pure.  Thread-safe.
 * The result is what stands between the quotes of a JSON string: a quote, a backslash, C0 and C1
 * controls and DEL are escaped, every byte that is not UTF-8 becomes \ufffd.  logfmt readers take
 * the same form, so both log formats share it.
 */
#ifndef SERVICE_LOG_ESCAPE_H
#define SERVICE_LOG_ESCAPE_H

#include "storage/base/slice.h"

/* Bytes that hold one escaped character, whichever it is. */
#define ESCAPE_CHARACTER 6

/* Write the start of @text that fits into @room bytes at @out, never half a character; no NUL is
 * added.  Returns the bytes written; @ret_taken (may be NULL) gets the bytes of @text they stand
 * for. */
size_t escape_text(struct slice text, char *out, size_t room, size_t *ret_taken);

/* The same as a string: escaped, cut with "..." where it does not fit, with a NUL.  @room >= 4. */
void escape_string(const char *text, char *out, size_t room);

#endif

/* escape.h - make text of any origin safe for one line of a log, or for a terminal.
 *
 * Layer: service; pure, except that escape_print() writes.  Thread-safe.
 * The result may stand between the quotes of a JSON string.  A quote, a backslash and the control
 * characters below are escaped.  A byte that is not UTF-8 becomes \ufffd.  Readers of logfmt take
 * the same form, so both log formats share it.
 */
#ifndef SERVICE_LOG_ESCAPE_H
#define SERVICE_LOG_ESCAPE_H

#include <stdio.h>

#include "storage/base/slice.h"

/* Bytes that hold any one escaped character. */
#define ESCAPE_CHARACTER 6

/* The bytes of the control character that @text begins with; 0: it begins with none.  Control
 * characters are C0, C1, DEL, and those that turn the direction of what stands around them
 * (Unicode's Bidi_Control): a name with one could show a row's figures in another order. */
size_t escape_control(struct slice text);

/* Print @text on a terminal: each control character becomes '?'. */
void escape_print(const char *text, FILE *out);

/* Make @text fit for a terminal: each byte of a control character becomes '?'. */
void escape_in_place(char *text);

/* Write @text, escaped, to @out, as far as it fits into @room bytes.  Half a character is never
 * written, and no NUL is added.  Returns how many bytes were written.  *ret_taken: so many bytes of
 * @text they stand for. */
size_t escape_text(struct slice text, char *out, size_t room, size_t *ret_taken);

/* Write @text as an escaped string with a NUL.  A text that does not fit into @room >= 4 bytes is
 * cut and ends in "...". */
void escape_string(const char *text, char *out, size_t room);

#endif

/* line_reader.h - read a file, plain or gzipped, line by line.
 *
 * Layer: service/client.  Not thread-safe.  Memory is bounded: a line longer than LINE_READER_MAX
 * is skipped, not gathered.
 */
#ifndef SERVICE_CLIENT_LINE_READER_H
#define SERVICE_CLIENT_LINE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* The longest line that is delivered, in bytes, without its line end. */
#define LINE_READER_MAX 65536

/* Bytes that are read at once, at most.  Several of the longest lines fit. */
#define LINE_READER_BUFFER (4 * LINE_READER_MAX)

enum line_reader_result {
    LINE_READER_LINE,
    LINE_READER_TOO_LONG, /* a line was skipped; line_reader_number() is its number */
    LINE_READER_END,
    LINE_READER_ERROR, /* all lines before the fault were delivered; see line_reader_error() */
};

struct line_reader;

/* The program, such as "xz", that has compressed a file which begins with the @n bytes of @head, if
 * the reader cannot read what that program writes.  NULL: the reader can read the file. */
const char *line_reader_packed(const char *head, size_t n);

/* Open @path, "-" for standard input.  Gzip is recognised by its content, and may have several
 * members.  A file that another such program wrote is an error at its first line.  NULL: errno says
 * why.  Close the reader with line_reader_close(). */
struct line_reader *line_reader_open(const char *path) MUST_CHECK;
void line_reader_close(struct line_reader *reader); /* NULL is fine */

/* Read the next line, without "\n" or "\r\n".  *ret is valid until the next call.  The last line
 * needs no line end.  A byte order mark at the start of the file is passed over. */
enum line_reader_result line_reader_next(struct line_reader *reader, struct slice *ret) MUST_CHECK;

/* The number, from 1, of the line that was delivered or skipped last; 0 before the first. */
uint64_t line_reader_number(const struct line_reader *reader);

/* Has the last line no line end?  Then the file ends there, perhaps in the middle of a line. */
bool line_reader_is_open(const struct line_reader *reader);

/* The text of LINE_READER_ERROR, valid until the reader is closed. */
const char *line_reader_error(const struct line_reader *reader);

/* How many bytes of the file, as stored, were read so far, and how many there are.  For a pipe the
 * first figure counts decompressed bytes, and the second is -1.  line_reader_consumed() may ask the
 * system, so do not call it for every line. */
int64_t line_reader_consumed(const struct line_reader *reader);
int64_t line_reader_total(const struct line_reader *reader);

#endif

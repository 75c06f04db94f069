/* line_reader.h - the lines of a file, plain or gzipped, one at a time.
 *
 * Layer: service/client.  Not thread-safe.  Memory is bounded: a line longer than LINE_READER_MAX
 * is skipped, not gathered.
 */
#ifndef SERVICE_CLIENT_LINE_READER_H
#define SERVICE_CLIENT_LINE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

/* Longest line that is delivered, in bytes, without its end. */
#define LINE_READER_MAX 65536

enum line_reader_result {
    LINE_READER_LINE,
    LINE_READER_TOO_LONG, /* a line was skipped; it has its number */
    LINE_READER_END,
    LINE_READER_ERROR, /* what could be read was delivered before; see line_reader_error() */
};

struct line_reader;

/* Open @path, "-" for standard input.  NULL with errno set if that fails.  Gzip is recognised by
 * its content, several members behind each other too.  Close it with line_reader_close(). */
struct line_reader *line_reader_open(const char *path);
void line_reader_close(struct line_reader *reader); /* NULL is fine */

/* The next line, without "\n" or "\r\n", in *ret (valid until the next call).  The last line needs
 * no line end.  A byte order mark at the start of the file is passed over. */
enum line_reader_result line_reader_next(struct line_reader *reader, struct slice *ret);

/* Number of the line delivered or skipped last, from 1; 0 before the first. */
uint64_t line_reader_number(const struct line_reader *reader);

/* The line delivered last has no line end: the file ends there, perhaps in the middle of it. */
bool line_reader_is_open(const struct line_reader *reader);

/* Text for LINE_READER_ERROR; valid until the reader is closed. */
const char *line_reader_error(const struct line_reader *reader);

/* Bytes of the file (as stored: compressed) read so far, and in all.  A pipe has no size (-1), and
 * tells only decompressed bytes.  Asks the system: not for every line. */
int64_t line_reader_consumed(const struct line_reader *reader);
int64_t line_reader_total(const struct line_reader *reader);

#endif

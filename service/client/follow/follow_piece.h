/* follow_piece.h - the next bytes of an access log, cut behind a line, as a batch of events.
 *
 * Layer: service/client.  Not thread-safe.  Memory is bounded whatever the log holds.
 *
 * A piece ends behind its last whole line: where the file ends, where the batch is full, or after
 * FOLLOW_PIECE_BYTES.  A line that is still being written stays for the next piece.  Lines longer
 * than LINE_READER_MAX are passed over, and a piece may end within one, so that no line has to be
 * read twice.  NUL bytes at the beginning of a line are passed over, too: a log that is truncated
 * under a writer without O_APPEND begins with a hole.
 *
 * The same bytes make the same piece again.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_PIECE_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_PIECE_H

#include "service/client/follow/follow_state.h"
#include "service/client/import_lines.h"
#include "service/client/line_reader.h"
#include "storage/base/compiler.h"

#define FOLLOW_PIECE_BYTES (4 * 1024 * 1024)

/* How the end of a file is taken. */
enum follow_end {
    FOLLOW_END_OPEN, /* more may be written: a line without its end waits */
    FOLLOW_END_LAST, /* nothing more will be written: the last line needs no end */
};

struct follow_cut {
    int64_t from; /* offset in the file; to.offset is the same if there was no whole line */
    struct follow_place to; /* the place behind the piece */
    bool is_full;           /* the piece ends before the file does: there may be more */
    int64_t seen; /* the file was read up to this offset: from `to` on there is a part of a line */
    struct follow_place ends[IMPORT_BATCH_EVENTS]; /* the place behind the line of each event */
};

/* Tell the parser of @lines which fields the lines of @file have, if a line before the file's place
 * named them.  False: the file could not be read, and errno says why. */
bool follow_read_header(
    int fd, const struct follow_file *file, struct import_lines *lines) MUST_CHECK;

/* Read @file, open as @fd, from its place on, up to offset @limit at most.  @buffer holds bytes
 * during the call.  Events go to the batch of @lines, which must be empty.  False: the file could
 * not be read, and errno says why; lines before the fault were taken, and *ret is written. */
bool follow_read(char buffer[LINE_READER_BUFFER], int fd, const struct follow_file *file,
    int64_t limit, enum follow_end end, struct import_lines *lines,
    struct follow_cut *ret) MUST_CHECK;

#endif

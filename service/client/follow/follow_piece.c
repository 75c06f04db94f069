#include "service/client/follow/follow_piece.h"

#include <errno.h>
#include <unistd.h>

#include "handlers/text/utf8.h"

/* One call of follow_read(). */
struct reading {
    struct import_lines *lines;
    struct follow_cut *cut;
    char *buffer;
    size_t start,
        end; /* of the bytes in the buffer that are not dealt with; start is at cut->to.offset */
};

static bool reading_is_full(const struct reading *reading)
{
    return import_batch_full(reading->lines->batch) ||
           reading->cut->to.offset - reading->cut->from >= FOLLOW_PIECE_BYTES;
}

static void reading_pass(struct reading *reading, size_t n)
{
    reading->start += n;
    reading->cut->to.offset += (int64_t)n;
}

bool follow_read_header(int fd, const struct follow_file *file, struct import_lines *lines)
{
    char text[LINE_READER_MAX];
    int64_t header = file->place.header;
    ssize_t n = header < 0 ? 0 : pread(fd, text, sizeof(text), (off_t)header);
    const char *newline = n > 0 ? memchr(text, '\n', (size_t)n) : NULL;
    if (newline != NULL) {
        size_t length = (size_t)(newline - text);
        struct slice line = {text, length > 0 && newline[-1] == '\r' ? length - 1 : length};
        struct log_line ignored;
        const char *detail;
        enum log_result result = log_parser_read(&lines->parser, line, &ignored, &detail);
        (void)result; /* the line was judged when it was read first */
    }
    return n >= 0;
}

/* Take the line of @n bytes at `start`, whose line end has @ending bytes. */
static void reading_take(struct reading *reading, size_t n, size_t ending)
{
    struct follow_place *to = &reading->cut->to;
    struct slice line = {reading->buffer + reading->start, n};
    size_t before = import_batch_count(reading->lines->batch);
    int64_t at = to->offset;
    reading_pass(reading, n + ending);
    to->lines++;
    if (line.n > 0 && line.p[line.n - 1] == '\r') {
        line.n--;
    }
    if (to->in_long_line || line.n > LINE_READER_MAX) {
        to->in_long_line = false;
        import_report_malformed(reading->lines->report, to->lines, "longer than 64 KiB");
        return;
    }
    line = at == 0 ? utf8_without_mark(line) : line;
    if (slice_begins(line, SLICE("#Fields:"))) { /* this line of a W3C log names the fields */
        to->header = at;
    }
    import_lines_take(reading->lines, line, to->lines);
    if (import_batch_count(reading->lines->batch) > before) {
        reading->cut->ends[before] = *to;
    }
}

/* Take the lines in the buffer, as long as the piece is not full. */
static void reading_take_lines(struct reading *reading)
{
    while (reading->start < reading->end && !reading_is_full(reading)) {
        if (reading->buffer[reading->start] == '\0' && !reading->cut->to.in_long_line) {
            reading_pass(reading, 1);
            continue;
        }
        const char *from = reading->buffer + reading->start;
        size_t left = reading->end - reading->start;
        const char *newline = memchr(from, '\n', left);
        if (newline != NULL) {
            reading_take(reading, (size_t)(newline - from), 1);
        } else if (reading->cut->to.in_long_line || left > LINE_READER_MAX + 1) {
            reading->cut->to.in_long_line = true;
            reading_pass(reading, left);
        } else {
            return;
        }
    }
}

/* Read what follows the bytes in the buffer, up to @limit.  0: the end; -1: errno says why. */
static ssize_t reading_fill(struct reading *reading, int fd, int64_t limit)
{
    if (reading->start > 0) {
        memmove(reading->buffer, reading->buffer + reading->start, reading->end - reading->start);
        reading->end -= reading->start;
        reading->start = 0;
    }
    int64_t at = reading->cut->to.offset + (int64_t)reading->end;
    size_t room = LINE_READER_BUFFER - reading->end;
    if (limit - at < (int64_t)room) {
        room = limit > at ? (size_t)(limit - at) : 0;
    }
    ssize_t n;
    do {
        n = pread(fd, reading->buffer + reading->end, room, (off_t)at);
    } while (n < 0 && errno == EINTR);
    reading->end += n > 0 ? (size_t)n : 0;
    return n;
}

bool follow_read(char buffer[LINE_READER_BUFFER], int fd, const struct follow_file *file,
    int64_t limit, enum follow_end end, struct import_lines *lines, struct follow_cut *ret)
{
    struct reading reading = {.lines = lines, .cut = ret, .buffer = buffer};
    ret->from = file->place.offset;
    ret->to = file->place;
    ssize_t n = 1;
    while (n > 0 && !reading_is_full(&reading)) {
        n = reading_fill(&reading, fd, limit);
        reading_take_lines(&reading);
    }
    ret->is_full = reading_is_full(&reading) || ret->to.offset == limit;
    if (n == 0 && end == FOLLOW_END_LAST && !ret->is_full &&
        (reading.start < reading.end || ret->to.in_long_line)) {
        reading_take(&reading, reading.end - reading.start, 0);
    }
    ret->seen = ret->to.offset + (int64_t)(reading.end - reading.start);
    return n >= 0;
}

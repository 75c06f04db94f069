#include "service/client/line_reader.h"

#include "handlers/text/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define INFLATE_BYTES (128 * 1024)

struct line_reader {
    gzFile file;
    int64_t total;
    uint64_t number;
    size_t start, scanned, end; /* start: of the line; [start, scanned) holds no line end */
    bool at_end, failed;
    bool is_open;  /* the line delivered last has no line end */
    bool skipping; /* inside a line that is too long, whose bytes are dropped */
    char error[128];
    char buffer[LINE_READER_BUFFER];
};

/* Free what line_reader_open() has so far.  @reader may be NULL.  errno stays. */
static void give_up(struct line_reader *reader, int fd)
{
    int saved = errno;
    if (reader != NULL && reader->file != NULL) {
        (void)gzclose_r(reader->file); /* closes the descriptor, too; nothing was written */
    } else {
        (void)close(fd);
    }
    free(reader);
    errno = saved;
}

struct line_reader *line_reader_open(const char *path)
{
    /* Standard input is copied, because closing the reader closes its descriptor. */
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    struct line_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        give_up(reader, fd);
        return NULL;
    }
    struct stat about;
    reader->total = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? (int64_t)about.st_size : -1;
    reader->file = gzdopen(fd, "rb");
    if (reader->file == NULL || gzbuffer(reader->file, INFLATE_BYTES) != 0) {
        errno = ENOMEM;
        give_up(reader, fd);
        return NULL;
    }
    return reader;
}

void line_reader_close(struct line_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    (void)gzclose_r(reader->file); /* only read: line_reader_next() has told every fault */
    free(reader);
}

const char *line_reader_packed(const char *head, size_t n)
{
    static const struct {
        const char *magic;
        size_t n, at;
        const char *program;
    } programs[] = {
        {"\x28\xb5\x2f\xfd", 4, 0, "zstd"},
        {"\xfd\x37zXZ", 5, 0, "xz"},
        {"1AY&SY", 6, 4, "bzip2"}, /* behind "BZh9", with which a line may begin, too */
        {"\x04\x22\x4d\x18", 4, 0, "lz4"},
    };
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        size_t at = programs[i].at;
        if (n >= at + programs[i].n && memcmp(head + at, programs[i].magic, programs[i].n) == 0) {
            return programs[i].program;
        }
    }
    return NULL;
}

static void fail(struct line_reader *reader)
{
    int code = Z_OK;
    const char *text = gzerror(reader->file, &code);
    /* gzerror() puts the file's name in front; that of a descriptor is "<fd:3>". */
    const char *colon = strstr(text, ">: ");
    if (colon != NULL) {
        text = colon + 3;
    }
    if (code == Z_ERRNO) {
        text = strerror(errno);
    }
    reader->failed = true;
    (void)snprintf(reader->error, sizeof(reader->error), "%s", text);
}

/* Can the reader read a file that begins with these @n bytes?  False: the reader has an error. */
static bool check_head(struct line_reader *reader, size_t n)
{
    const char *program = line_reader_packed(reader->buffer, n);
    if (program != NULL) {
        reader->failed = true;
        (void)snprintf(reader->error, sizeof(reader->error),
            "%s has compressed it: pipe what `%s -dc` makes of it into `tallyd import -`", program,
            program);
    }
    return program == NULL;
}

/* Read more bytes behind `end`.  False: the file has ended, or failed. */
static bool fill(struct line_reader *reader)
{
    if (reader->at_end || reader->failed) {
        return false;
    }
    bool at_start = reader->number == 0 && reader->end == 0 && !reader->skipping;
    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->scanned -= reader->start;
        reader->start = 0;
    }
    int n = gzread(
        reader->file, reader->buffer + reader->end, (unsigned)(LINE_READER_BUFFER - reader->end));
    if (n > 0 && at_start && !check_head(reader, (size_t)n)) {
        return false;
    }
    if (n > 0) {
        reader->end += (size_t)n;
        return true;
    }
    /* A gzip stream that was cut off looks like the end of a file: only gzerror() tells. */
    int code = Z_OK;
    (void)gzerror(reader->file, &code);
    if (n < 0 || (code != Z_OK && code != Z_STREAM_END)) {
        fail(reader);
    }
    reader->at_end = true;
    return false;
}

/* Find the line's end in the buffer, and read on as needed.  NULL: the file ends before the line
 * does.  A line that outgrows its bound is dropped on the way. */
static const char *find_end(struct line_reader *reader)
{
    for (;;) {
        const char *from = reader->buffer + reader->scanned;
        const char *newline = memchr(from, '\n', reader->end - reader->scanned);
        if (newline != NULL) {
            return newline;
        }
        reader->scanned = reader->end;
        /* One byte more than the bound, for the CR of a line that just fits. */
        if (reader->skipping || reader->end - reader->start > LINE_READER_MAX + 1) {
            reader->skipping = true;
            reader->start = reader->end;
        }
        if (!fill(reader)) {
            return NULL;
        }
    }
}

enum line_reader_result line_reader_next(struct line_reader *reader, struct slice *ret)
{
    const char *newline = find_end(reader);
    bool too_long = reader->skipping;
    if (newline == NULL && reader->failed) {
        return LINE_READER_ERROR; /* the buffer holds a piece of a line */
    }
    if (newline == NULL && reader->end == reader->start && !too_long) {
        return LINE_READER_END;
    }
    struct slice line;
    line.p = reader->buffer + reader->start;
    line.n = newline != NULL ? (size_t)(newline - line.p) : reader->end - reader->start;
    reader->start = newline != NULL ? (size_t)(newline + 1 - reader->buffer) : reader->end;
    reader->scanned = reader->start;
    reader->skipping = false;
    reader->is_open = newline == NULL;
    reader->number++;
    if (line.n > 0 && line.p[line.n - 1] == '\r') {
        line.n--;
    }
    if (too_long || line.n > LINE_READER_MAX) {
        return LINE_READER_TOO_LONG;
    }
    *ret = reader->number == 1 ? utf8_without_mark(line) : line;
    return LINE_READER_LINE;
}

uint64_t line_reader_number(const struct line_reader *reader)
{
    return reader->number;
}

bool line_reader_is_open(const struct line_reader *reader)
{
    return reader->is_open;
}

const char *line_reader_error(const struct line_reader *reader)
{
    return reader->error;
}

int64_t line_reader_consumed(const struct line_reader *reader)
{
    z_off_t offset = gzoffset(reader->file);
    return offset < 0 ? (int64_t)gztell(reader->file) : (int64_t)offset;
}

int64_t line_reader_total(const struct line_reader *reader)
{
    return reader->total;
}

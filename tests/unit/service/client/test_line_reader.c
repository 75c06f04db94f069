#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/client/line_reader.h"
#include "tests/lib/gzip.h"

/* A file with @bytes in it, open, and gone from its directory. */
static struct line_reader *reader_of(const char *bytes, size_t n)
{
    char path[] = "/tmp/tallyd-lines-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0);
    struct line_reader *reader = line_reader_open(path);
    cr_assert(reader != NULL);
    (void)unlink(path);
    return reader;
}

static void expect_line(struct line_reader *reader, uint64_t number, const char *text)
{
    struct slice line = {NULL, 0};
    cr_assert_eq(line_reader_next(reader, &line), LINE_READER_LINE, "line %d of %s", (int)number,
        line_reader_error(reader));
    cr_expect(slice_equal(line, slice_of(text)), "[%.*s], not [%s]", (int)line.n, line.p, text);
    cr_expect_eq(line_reader_number(reader), number);
}

static void expect_end(struct line_reader *reader, enum line_reader_result how)
{
    struct slice line;
    cr_expect_eq(line_reader_next(reader, &line), how, "%s", line_reader_error(reader));
    cr_expect_eq(line_reader_next(reader, &line), how, "once more");
    line_reader_close(reader);
}

Test(line_reader, lines_with_any_end)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a\nb\r\n\n\xef\xbb\xbf"
                               "c\r\r\nlast";
    struct line_reader *reader = reader_of(text, sizeof(text) - 1);
    cr_expect_eq(line_reader_number(reader), 0);
    cr_expect_eq(line_reader_total(reader), (int64_t)sizeof(text) - 1);
    expect_line(reader, 1, "a");
    expect_line(reader, 2, "b");
    expect_line(reader, 3, "");
    expect_line(reader, 4,
        "\xef\xbb\xbf"
        "c\r");
    expect_line(reader, 5, "last");
    cr_expect_eq(line_reader_consumed(reader), line_reader_total(reader));
    expect_end(reader, LINE_READER_END);
}

Test(line_reader, nothing)
{
    expect_end(reader_of("", 0), LINE_READER_END);
    struct line_reader *reader = reader_of("\n", 1);
    expect_line(reader, 1, "");
    expect_end(reader, LINE_READER_END);
}

Test(line_reader, the_longest_line_and_longer_ones)
{
    enum { N = LINE_READER_MAX };
    size_t n = 0;
    char *text = malloc(6 * N);
    cr_assert(text != NULL);
    memset(text, 'x', 6 * N);
    text[n += N] = '\r'; /* just fits */
    text[++n] = '\n';
    text[n += 1 + N + 1] = '\n'; /* one too long */
    text[n += 1 + 3 * N] = '\n'; /* more than any buffer */
    text[++n] = 'e';             /* and on as if nothing was */
    struct line_reader *reader = reader_of(text, n + 1);
    struct slice line = {NULL, 0};
    cr_assert_eq(line_reader_next(reader, &line), LINE_READER_LINE);
    cr_expect_eq(line.n, (size_t)N);
    cr_expect_eq(line_reader_next(reader, &line), LINE_READER_TOO_LONG);
    cr_expect_eq(line_reader_next(reader, &line), LINE_READER_TOO_LONG);
    cr_expect_eq(line_reader_number(reader), 3);
    expect_line(reader, 4, "e");
    expect_end(reader, LINE_READER_END);
    free(text);
}

/* Only the first bytes of a file say what it is; a client may have sent such bytes later. */
Test(line_reader, a_line_that_begins_as_a_compressed_file_does)
{
    static const char zstd[] = "\x28\xb5\x2f\xfd";
    const size_t n = LINE_READER_BUFFER, width = 64;
    char *text = malloc(n + sizeof(zstd));
    struct slice line;
    cr_assert(text != NULL);
    memset(text, 'x', n);
    for (size_t end = width; end <= n; end += width) {
        text[end - 1] = '\n';
    }
    memcpy(text + n, zstd, sizeof(zstd));
    struct line_reader *reader = reader_of(text, n + sizeof(zstd) - 1);
    for (size_t i = 0; i < n / width; i++) {
        cr_assert_eq(line_reader_next(reader, &line), LINE_READER_LINE);
    }
    expect_line(reader, n / width + 1, zstd);
    expect_end(reader, LINE_READER_END);
    free(text);
}

Test(line_reader, gzip_members_behind_each_other)
{
    size_t n1, n2;
    char *one = gzip_member("a\nb", 3, &n1);
    char *two = gzip_member("c\nd\n", 4, &n2);
    char both[512];
    cr_assert(n1 + n2 <= sizeof(both));
    memcpy(both, one, n1);
    memcpy(both + n1, two, n2);
    struct line_reader *reader = reader_of(both, n1 + n2);
    expect_line(reader, 1, "a");
    expect_line(reader, 2, "bc");
    expect_line(reader, 3, "d");
    expect_end(reader, LINE_READER_END);
    free(one);
    free(two);
}

/* What came before is delivered; a piece of a line is none. */
Test(line_reader, a_damaged_gzip_stream_is_an_error)
{
    size_t n;
    char *member = gzip_member("a\nb\nc", 5, &n);
    struct line_reader *reader = reader_of(member, n - 8); /* cut off */
    struct slice line;
    enum line_reader_result how;
    while ((how = line_reader_next(reader, &line)) == LINE_READER_LINE) {
    }
    cr_expect_eq(how, LINE_READER_ERROR);
    cr_expect(
        line_reader_error(reader)[0] != '\0' && strstr(line_reader_error(reader), "fd:") == NULL);
    expect_end(reader, LINE_READER_ERROR);

    member[n - 6] ^= 1; /* the checksum */
    reader = reader_of(member, n);
    while ((how = line_reader_next(reader, &line)) == LINE_READER_LINE) {
    }
    cr_expect_eq(how, LINE_READER_ERROR);
    expect_end(reader, LINE_READER_ERROR);
    free(member);
}

Test(line_reader, what_cannot_be_opened)
{
    errno = 0;
    cr_expect(line_reader_open("/no/such/file") == NULL);
    cr_expect_eq(errno, ENOENT);
    line_reader_close(NULL);
    struct line_reader *reader = line_reader_open("/"); /* a directory opens, and is no file */
    cr_assert(reader != NULL);
    cr_expect_eq(line_reader_total(reader), -1);
    expect_end(reader, LINE_READER_ERROR);
}

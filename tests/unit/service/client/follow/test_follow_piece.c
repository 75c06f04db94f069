#include "service/client/follow/follow_piece.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

TestSuite(follow_piece, .timeout = 60);

static struct import_options options = {.format = LOG_FORMAT_NDJSON};
static struct import_report report;
static struct import_batch *batch;
static struct import_lines lines;
static char buffer[LINE_READER_BUFFER];
static struct follow_file file;
static struct follow_cut cut;
static FILE *log_file;

static void begin(void)
{
    report =
        (struct import_report){.malformed_named = IMPORT_REPORT_NAMED}; /* nothing is printed */
    batch = import_batch_new(NULL);
    log_file = tmpfile();
    cr_assert(batch != NULL && log_file != NULL);
    import_lines_init(&lines, &options, batch, &report);
    file = (struct follow_file){.place = {.header = -1}};
}

static void end(void)
{
    import_batch_free(batch);
    (void)fclose(log_file);
}

static void append(const char *text, size_t n)
{
    cr_assert_eq(write(fileno(log_file), text, n), (ssize_t)n);
}

/* Read, and make the cut's end the offset.  Returns the number of events. */
static size_t read_on(int64_t limit, enum follow_end how)
{
    import_batch_clear(batch);
    cr_assert(follow_read(buffer, fileno(log_file), &file, limit, how, &lines, &cut));
    cr_assert_eq(cut.from, file.place.offset);
    file.place = cut.to;
    return import_batch_count(batch);
}

Test(follow_piece, ends_behind_the_last_whole_line, .init = begin, .fini = end)
{
    append("{}\n{}\n{\"a", 9);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 2);
    cr_expect_eq(cut.to.offset, 6);
    cr_expect_eq(cut.ends[0].offset, 3);
    cr_expect_eq(cut.ends[1].offset, 6);
    cr_expect_eq(cut.ends[1].lines, 2);
    cr_expect_not(cut.is_full);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 0);
    cr_expect_eq(cut.to.offset, 6);
    append("\":1}\r\n", 6);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 1);
    cr_expect_eq(cut.to.lines, 3);
    struct slice body = import_batch_body(batch, 0, 1);
    cr_expect(body.n == 8 && memcmp(body.p, "{\"a\":1}\n", 8) == 0);
}

Test(follow_piece, the_last_line_may_need_no_end, .init = begin, .fini = end)
{
    append("{}\n{}", 5);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_LAST), 2);
    cr_expect_eq(cut.to.offset, 5);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_LAST), 0);
}

Test(follow_piece, a_limit_makes_the_same_piece_again, .init = begin, .fini = end)
{
    append("{}\n \n{}\n{}\n", 11);
    cr_expect_eq(read_on(5, FOLLOW_END_OPEN), 1);
    cr_expect_eq(cut.to.offset, 5);
    cr_expect(cut.is_full);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 2);
    cr_expect_eq(cut.to.lines, 4);
}

Test(follow_piece, a_full_batch_ends_a_piece, .init = begin, .fini = end)
{
    for (int i = 0; i < IMPORT_BATCH_EVENTS + 1; i++) {
        append("{}\n", 3);
    }
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), IMPORT_BATCH_EVENTS);
    cr_expect(cut.is_full);
    cr_expect_eq(cut.to.offset, 3 * IMPORT_BATCH_EVENTS);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 1);
}

Test(follow_piece, many_bytes_without_an_event_end_a_piece, .init = begin, .fini = end)
{
    static char blanks[FOLLOW_PIECE_BYTES + 500000];
    memset(blanks, '\n', sizeof(blanks));
    append(blanks, sizeof(blanks));
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 0);
    cr_expect(cut.is_full);
    cr_expect_eq(cut.to.offset, FOLLOW_PIECE_BYTES);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 0);
    cr_expect_eq(cut.to.lines, sizeof(blanks));
}

Test(follow_piece, a_line_that_is_too_long_is_passed_in_pieces, .init = begin, .fini = end)
{
    static char text[3 * LINE_READER_MAX];
    memset(text, 'x', sizeof(text));
    append("{}\n", 3);
    for (int i = 0; i < 5; i++) {
        append(text, sizeof(text));
        cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), i == 0);
        cr_expect(cut.to.in_long_line);
        cr_expect_eq(cut.to.lines, 1);
    }
    append("\n{}\n", 4);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 1);
    cr_expect_eq(cut.to.lines, 3);
    cr_expect_eq(report.left_out[IMPORT_MALFORMED], 1);
    cr_expect_not(cut.to.in_long_line);
}

Test(follow_piece, the_longest_line_that_fits, .init = begin, .fini = end)
{
    static char text[LINE_READER_MAX + 3];
    memset(text, ' ', sizeof(text));
    memcpy(text, "{}", 2);
    memcpy(text + LINE_READER_MAX, "\r\n", 2);
    append(text, LINE_READER_MAX + 2);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 1);
    memcpy(text + LINE_READER_MAX, " \n", 2);
    append(text, LINE_READER_MAX + 2);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 0);
    cr_expect_eq(report.left_out[IMPORT_MALFORMED], 1);
}

Test(follow_piece, a_hole_before_a_line_is_passed_over, .init = begin, .fini = end)
{
    cr_assert_eq(lseek(fileno(log_file), 300000, SEEK_SET), 300000);
    append("{}\n", 3);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 1);
    cr_expect_eq(report.left_out[IMPORT_MALFORMED], 0);
    cr_expect_eq(cut.to.lines, 1);
}

Test(follow_piece, a_header_is_remembered_and_told_again, .init = begin, .fini = end)
{
    options.format = LOG_FORMAT_AUTO;
    import_lines_init(&lines, &options, batch, &report);
    static const char head[] =
        "#Version: 1.0\n"
        "#Fields: date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status\r\n";
    static const char line[] = "2026-03-10 10:56:20 GET /a 192.0.2.1 Mozilla/5.0 200\n";
    append(head, sizeof(head) - 1);
    append(line, sizeof(line) - 1);
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 1);
    cr_expect_eq(cut.to.header, 14);
    log_parser_init(&lines.parser, lines.parser.format, NULL); /* another process */
    append(line, sizeof(line) - 1);
    cr_expect(follow_read_header(fileno(log_file), &file, &lines));
    cr_expect_not(follow_read_header(-1, &file, &lines), "what it says of the fields is not known");
    cr_expect_eq(read_on(INT64_MAX, FOLLOW_END_OPEN), 1);
    cr_expect_eq(cut.to.header, 14);
    options.format = LOG_FORMAT_NDJSON;
}

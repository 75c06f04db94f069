#include "service/client/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "handlers/reply/json_memory.h"
#include "service/client/follow/follow.h"
#include "service/client/import_batch.h"
#include "service/client/import_lines.h"
#include "service/client/import_options.h"
#include "service/client/import_report.h"
#include "service/client/import_send.h"
#include "service/client/import_upload.h"
#include "service/client/line_reader.h"

_Static_assert(LINE_READER_MAX <= LOG_LINE_MAX, "every line that is read can be parsed");

enum exit_status { EXIT_DONE = 0, EXIT_INCOMPLETE = 1, EXIT_USAGE = 2 };

struct import {
    struct import_options options;
    struct import_lines lines;
    struct line_reader *reader;
    struct import_batch *batch;
    struct import_upload *upload;
    struct import_report report;
    bool has_open_end; /* the last event's line has no line end, and may be a piece of a line */
    struct import_sender sender;
};

/* Say why events [@first, @first + @count) could not be sent, and what of the file is counted. */
static void say_stopped(struct import *import, size_t first, size_t count,
    enum import_upload_result result, const char *detail)
{
    struct import_report *report = &import->report;
    uint64_t from = import_batch_line(import->batch, first);
    uint64_t to = import_batch_line(import->batch, first + count - 1);
    import_report_say(report, "%s", detail);
    if (result == IMPORT_UPLOAD_IN_DOUBT) {
        report->in_doubt += count;
        import_report_say(report,
            "lines %" PRIu64 " to %" PRIu64
            " are in doubt: they may or may not be counted; run the same command again within a "
            "day: what is counted already counts nothing",
            from, to);
    } else if (result == IMPORT_UPLOAD_UNREACHABLE && !import->sender.answered) {
        import_report_say(
            report, "nothing was sent; is `tallyd serve` running at %s?", import->options.url);
    } else {
        import_report_say(report,
            "stopped: nothing from line %" PRIu64
            " on is counted; run the same command again within a day: what is counted already "
            "counts nothing",
            from);
    }
}

/* Send events [@first, @count) of the batch.  import_send.h says what @closed means. */
static bool send_range(struct import *import, size_t first, size_t count, bool closed)
{
    while (first < count) {
        struct import_upload_answer answer;
        size_t n = 0;
        enum import_upload_result result =
            import_send(&import->sender, first, count, closed, &n, &answer);
        if (result != IMPORT_UPLOAD_ANSWERED) {
            say_stopped(import, first, n, result, answer.detail);
            return false;
        }
        import_lines_answered(&import->lines, first, n, &answer);
        first += n;
    }
    return true;
}

/* A last line without a line end is sent alone, because it may be another line next time. */
static bool flush(struct import *import)
{
    size_t count = import_batch_count(import->batch);
    size_t whole = import->has_open_end && count > 0 ? count - 1 : count;
    bool closed = whole == count && import_batch_full(import->batch);
    import_sender_begin(&import->sender);
    bool sent = send_range(import, 0, whole, closed) && send_range(import, whole, count, false);
    import_sender_end(&import->sender);
    import_batch_clear(import->batch);
    return sent;
}

static void take_line(struct import *import, struct slice text)
{
    size_t before = import_batch_count(import->batch);
    import_lines_take(&import->lines, text, line_reader_number(import->reader));
    import->has_open_end =
        line_reader_is_open(import->reader) && import_batch_count(import->batch) > before;
}

/* The lines that were read before the fault are whole.  They are sent, and found again when the
 * whole file is imported. */
static void say_unreadable(struct import *import)
{
    uint64_t number = line_reader_number(import->reader);
    if (number == 0) {
        import_report_say(&import->report, "cannot read %s: %s", import->options.path,
            line_reader_error(import->reader));
    } else if (flush(import)) {
        import_report_say(&import->report, "cannot read %s behind line %" PRIu64 ": %s",
            import->options.path, number, line_reader_error(import->reader));
    }
}

/* Read and send the whole file.  False: the import ended early. */
static bool run(struct import *import)
{
    for (;;) {
        if (import_report_due(&import->report)) {
            import_report_progress(&import->report, line_reader_consumed(import->reader),
                line_reader_total(import->reader));
        }
        struct slice text;
        switch (line_reader_next(import->reader, &text)) {
        case LINE_READER_LINE:
            take_line(import, text);
            break;
        case LINE_READER_TOO_LONG:
            import_report_malformed(
                &import->report, line_reader_number(import->reader), "longer than 64 KiB");
            break;
        case LINE_READER_END:
            return flush(import);
        case LINE_READER_ERROR:
            say_unreadable(import);
            return false;
        }
        if (import_batch_full(import->batch) && !flush(import)) {
            return false;
        }
    }
}

/* Say what an import that was ended leaves behind, below the bar.  The signal that is raised
 * again ends the process as if there were no handler, so a shell sees what happened. */
static void on_interrupt(int number)
{
    static const char text[] = "\ntallyd import: interrupted; run the same command again within a "
                               "day: what is counted already counts nothing\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)raise(number);
}

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static bool set_up(struct import *import)
{
    const struct import_options *options = &import->options;
    import_report_init(&import->report);
    import->reader = line_reader_open(options->path);
    if (import->reader == NULL) {
        import_report_say(&import->report, "cannot open %s: %s", options->path, strerror(errno));
        return false;
    }
    import->batch = import_batch_new(options->site);
    import->upload = import_upload_new(
        options->url, options->token, import_filter_counts_robots(&options->filter));
    if (sodium_init() < 0 || import->batch == NULL || import->upload == NULL) {
        import_report_say(&import->report, "out of memory");
        return false;
    }
    import_lines_init(&import->lines, options, import->batch, &import->report);
    import->sender = (struct import_sender){.upload = import->upload,
        .batch = import->batch,
        .report = &import->report,
        .request_max = IMPORT_BATCH_EVENTS};
    return true;
}

int import_main(int argc, char **argv)
{
    struct import import = {0};
    char error[256];
    json_memory_watch();
    switch (import_options_parse(argc, argv, &import.options, error, sizeof(error))) {
    case IMPORT_OPTIONS_HELP:
        import_options_print_help(stdout);
        return EXIT_DONE;
    case IMPORT_OPTIONS_WRONG:
        fprintf(stderr, "tallyd import: %s\n", error);
        return EXIT_USAGE;
    case IMPORT_OPTIONS_STARVED:
        fprintf(stderr, "tallyd import: %s\n", error);
        return EXIT_INCOMPLETE;
    case IMPORT_OPTIONS_RUN:
        break;
    }
    if (import.options.follow) {
        return follow_run(&import.options) ? EXIT_DONE : EXIT_INCOMPLETE;
    }
    int status = EXIT_INCOMPLETE;
    handle_signals();
    if (set_up(&import)) {
        bool complete = run(&import);
        import_lines_finish(&import.lines);
        import_report_finish(
            &import.report, line_reader_number(import.reader), import.options.json);
        if (complete && import.report.rejected == 0) {
            status = EXIT_DONE;
        }
    }
    import_upload_free(import.upload);
    import_batch_free(import.batch);
    line_reader_close(import.reader);
    return status;
}

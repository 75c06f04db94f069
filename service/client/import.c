#include "service/client/import.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "service/client/access_log.h"
#include "service/client/import_batch.h"
#include "service/client/import_key.h"
#include "service/client/import_options.h"
#include "service/client/import_report.h"
#include "service/client/import_upload.h"
#include "service/client/line_reader.h"

/* How long a batch is offered to a server that has no time for it. */
#define PATIENCE_MS     60000
#define FIRST_WAIT_MS   250
#define LONGEST_WAIT_MS 8000

enum exit_status { EXIT_DONE = 0, EXIT_INCOMPLETE = 1, EXIT_USAGE = 2 };

struct import {
    struct import_options options;
    enum import_format format; /* IMPORT_FORMAT_AUTO until a line has shown it */
    struct line_reader *reader;
    struct import_batch *batch;
    struct import_upload *upload;
    struct import_report report;
    size_t batch_max;          /* events; less than a whole batch if the server takes no more */
    int64_t oldest_s;          /* of the minutes that are kept */
    bool answered, waited;     /* ever */
    struct import_chain chain; /* the batches before this one */
};

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        continue;
    }
}

/* Is it worth, and safe, to send the same again?  With its key it is always safe. */
static bool may_try_again(const struct import *import, enum import_upload_result result)
{
    switch (result) {
    case IMPORT_UPLOAD_UNREACHABLE:
        /* A server that has never answered is not there; one that has is being restarted. */
        return import->answered;
    case IMPORT_UPLOAD_BUSY:
    case IMPORT_UPLOAD_IN_DOUBT:
        return true;
    case IMPORT_UPLOAD_ANSWERED:
    case IMPORT_UPLOAD_TOO_LARGE:
    case IMPORT_UPLOAD_REFUSED:
        break;
    }
    return false;
}

/* Post events [@first, @first + @count), again while that is worth it. */
static enum import_upload_result post(
    struct import *import, size_t first, size_t count, struct import_upload_answer *ret)
{
    struct slice body = import_batch_body(import->batch, first, count);
    int64_t waited_ms = 0, wait_ms, next_ms = FIRST_WAIT_MS;
    char key[IMPORT_KEY_TEXT];
    bool doubted = false;

    import_key(&import->chain, import_batch_line(import->batch, first),
        import_batch_line(import->batch, first + count - 1), body, key);
    for (;;) {
        enum import_upload_result result =
            import_upload_post(import->upload, key, body, count, ret);

        if (result == IMPORT_UPLOAD_ANSWERED && doubted) {
            ret->replayed = false; /* counted by this run, when there was no answer */
        }
        if (!may_try_again(import, result) || waited_ms >= PATIENCE_MS) {
            return doubted && result != IMPORT_UPLOAD_ANSWERED ? IMPORT_UPLOAD_IN_DOUBT : result;
        }
        import->answered = true;
        doubted = doubted || result == IMPORT_UPLOAD_IN_DOUBT;
        wait_ms = ret->retry_after_s > 0 && ret->retry_after_s <= PATIENCE_MS / 1000
                      ? ret->retry_after_s * 1000
                      : next_ms;
        if (wait_ms > PATIENCE_MS - waited_ms) {
            wait_ms = PATIENCE_MS - waited_ms;
        }
        if (!import->waited) {
            import_report_say(&import->report, "%s; waiting, and trying again", ret->detail);
        }
        import->waited = true;
        sleep_ms(wait_ms);
        waited_ms += wait_ms;
        next_ms = next_ms * 2 < LONGEST_WAIT_MS ? next_ms * 2 : LONGEST_WAIT_MS;
    }
}

/* One rejected event.  NDJSON goes out unparsed, so it may simply not be JSON: that is malformed
 * here, as it is in a log. */
static void take_reject(struct import *import, size_t index, const char *detail)
{
    uint64_t number = import_batch_line(import->batch, index);

    if (import->format == IMPORT_FORMAT_NDJSON && !import_batch_is_object(import->batch, index)) {
        import_report_malformed(&import->report, number, "not a JSON object");
    } else {
        import->report.rejected++;
        import_report_rejected(&import->report, number, detail);
    }
}

static void take_answer(
    struct import *import, size_t first, size_t count, const struct import_upload_answer *answer)
{
    uint64_t unlisted = answer->rejected;
    size_t next = 0;

    import->answered = true;
    *(answer->replayed ? &import->report.before : &import->report.accepted) += answer->accepted;
    for (size_t i = 0; i < answer->n_rejects && unlisted > 0; i++, unlisted--) {
        take_reject(import, first + answer->rejects[i].index, answer->rejects[i].detail);
        next = answer->rejects[i].index + 1;
    }
    /* The server lists the first ones only; which of the others are not JSON can still be seen. */
    for (; unlisted > 0 && next < count && import->format == IMPORT_FORMAT_NDJSON; next++) {
        if (!import_batch_is_object(import->batch, first + next)) {
            take_reject(import, first + next, "");
            unlisted--;
        }
    }
    import->report.rejected += unlisted;
}

/* Why events [@first, @first + @count) could not be sent, and where that leaves the file. */
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
    } else if (result == IMPORT_UPLOAD_UNREACHABLE && !import->answered) {
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

/* Send events [@first, @first + @count) of the batch; in halves if the server takes no more at
 * once. */
static bool send_range(struct import *import, size_t first, size_t count)
{
    struct import_upload_answer answer;
    enum import_upload_result result = post(import, first, count, &answer);
    size_t half = (count + 1) / 2;

    if (result == IMPORT_UPLOAD_ANSWERED) {
        take_answer(import, first, count, &answer);
        return true;
    }
    if (result == IMPORT_UPLOAD_TOO_LARGE && count > 1) {
        if (half < import->batch_max) {
            import->batch_max = half;
        }
        return send_range(import, first, half) && send_range(import, first + half, count - half);
    }
    say_stopped(import, first, count, result, answer.detail);
    return false;
}

static bool flush(struct import *import)
{
    size_t count = import_batch_count(import->batch);
    bool sent = count == 0 || send_range(import, 0, count);

    if (count > 0) {
        import_chain_add(&import->chain, import_batch_line(import->batch, 0),
            import_batch_line(import->batch, count - 1),
            import_batch_body(import->batch, 0, count));
    }
    import_batch_clear(import->batch);
    return sent;
}

static bool starts_object(struct slice line)
{
    size_t blanks = 0;

    while (blanks < line.n && (line.p[blanks] == ' ' || line.p[blanks] == '\t')) {
        blanks++;
    }
    return blanks < line.n && line.p[blanks] == '{';
}

/* The format @line is in; IMPORT_FORMAT_AUTO if it is in none. */
static enum import_format detect(struct slice line)
{
    struct access_log_line ignored;
    const char *detail;

    if (starts_object(line)) {
        return IMPORT_FORMAT_NDJSON;
    }
    if (access_log_parse(line, ACCESS_LOG_COMBINED, &ignored, &detail) != ACCESS_LOG_MALFORMED) {
        return IMPORT_FORMAT_COMBINED;
    }
    if (access_log_parse(line, ACCESS_LOG_COMMON, &ignored, &detail) != ACCESS_LOG_MALFORMED) {
        return IMPORT_FORMAT_COMMON;
    }
    return IMPORT_FORMAT_AUTO;
}

static void take_log_line(struct import *import, struct slice text, uint64_t number)
{
    enum access_log_format format =
        import->format == IMPORT_FORMAT_COMMON ? ACCESS_LOG_COMMON : ACCESS_LOG_COMBINED;
    struct access_log_line line;
    const char *detail;

    switch (access_log_parse(text, format, &line, &detail)) {
    case ACCESS_LOG_EVENT:
        import->report.old += line.at_s < import->oldest_s;
        import_batch_add_event(import->batch, &line, number);
        break;
    case ACCESS_LOG_OTHER_METHOD:
        import->report.other_methods++;
        break;
    case ACCESS_LOG_MALFORMED:
        import_report_malformed(&import->report, number, detail);
        break;
    }
}

static void take_json_line(struct import *import, struct slice text, uint64_t number)
{
    size_t blanks = 0;

    while (blanks < text.n && (text.p[blanks] == ' ' || text.p[blanks] == '\t')) {
        blanks++;
    }
    if (blanks == text.n) {
        import->report.blank++;
    } else if (!import_batch_add_json(import->batch, text, number)) {
        import_report_malformed(&import->report, number, "not a JSON object");
    }
}

static void take_line(struct import *import, struct slice text)
{
    uint64_t number = line_reader_number(import->reader);

    if (import->format == IMPORT_FORMAT_AUTO) {
        import->format = detect(text);
    }
    if (import->format == IMPORT_FORMAT_NDJSON) {
        take_json_line(import, text, number);
    } else {
        take_log_line(import, text, number);
    }
}

/* What was read before the fault is whole lines: it is sent. */
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

/* Read and send the whole file; false if that ended early. */
static bool run(struct import *import)
{
    for (;;) {
        struct slice text;

        if (import_report_due(&import->report)) {
            import_report_progress(&import->report, line_reader_consumed(import->reader),
                line_reader_total(import->reader));
        }
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
        if ((import_batch_full(import->batch) ||
                import_batch_count(import->batch) >= import->batch_max) &&
            !flush(import)) {
            return false;
        }
    }
}

static void finish(struct import *import)
{
    struct import_report *report = &import->report;

    if (report->malformed > 0 && import->format == IMPORT_FORMAT_AUTO) {
        import_report_say(report, "no line is in a format that is known; see --format");
    }
    if (report->old > 0 && report->accepted > 0) {
        import_report_say(report,
            "%" PRIu64
            " lines are older than %s: their minutes are not kept, hours, days and months "
            "are (with the server's --keep-minutes at %s; a longer one keeps them)",
            report->old, import->options.keep_minutes, import->options.keep_minutes);
    }
    import_report_finish(report, line_reader_number(import->reader));
}

static bool set_up(struct import *import)
{
    const struct import_options *options = &import->options;

    import->format = options->format;
    import->batch_max = IMPORT_BATCH_EVENTS;
    import->oldest_s = INT64_MIN;
    if (options->keep_minutes_s != IMPORT_KEEP_FOREVER) {
        import->oldest_s = (int64_t)time(NULL) - options->keep_minutes_s;
    }
    import_report_init(&import->report);
    import->reader = line_reader_open(options->path);
    if (!import->reader) {
        import_report_say(&import->report, "cannot open %s: %s", options->path, strerror(errno));
        return false;
    }
    import->batch = import_batch_new(options->site);
    import->upload = import_upload_new(options->url, options->token);
    if (sodium_init() < 0 || !import->batch || !import->upload) {
        import_report_say(&import->report, "out of memory");
        return false;
    }
    return true;
}

int import_main(int argc, char **argv)
{
    struct import import = {0};
    char error[256];
    int status = EXIT_INCOMPLETE;

    switch (import_options_parse(argc, argv, &import.options, error, sizeof(error))) {
    case IMPORT_OPTIONS_HELP:
        import_options_print_help(stdout);
        return EXIT_DONE;
    case IMPORT_OPTIONS_WRONG:
        fprintf(stderr, "tallyd import: %s\n", error);
        return EXIT_USAGE;
    case IMPORT_OPTIONS_RUN:
        break;
    }
    if (set_up(&import)) {
        bool complete = run(&import);

        finish(&import);
        if (complete && import.report.rejected == 0) {
            status = EXIT_DONE;
        }
    }
    import_upload_free(import.upload);
    import_batch_free(import.batch);
    line_reader_close(import.reader);
    return status;
}

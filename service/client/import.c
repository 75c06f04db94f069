#include "service/client/import.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "service/client/import_batch.h"
#include "service/client/import_filter.h"
#include "service/client/import_options.h"
#include "service/client/import_report.h"
#include "service/client/import_send.h"
#include "service/client/import_upload.h"
#include "service/client/line_reader.h"
#include "service/client/site_of_host.h"
#include "service/formats/log_format.h"

_Static_assert(LINE_READER_MAX <= LOG_LINE_MAX, "every line that is read can be parsed");

enum exit_status { EXIT_DONE = 0, EXIT_INCOMPLETE = 1, EXIT_USAGE = 2 };

struct import {
    struct import_options options;
    struct log_parser parser;
    struct line_reader *reader;
    struct import_batch *batch;
    struct import_upload *upload;
    struct import_report report;
    int64_t oldest_s[IMPORT_LEVELS]; /* the level keeps nothing older */
    uint64_t without_host;           /* page views whose log line names no host, for the site */
    bool has_open_end; /* the last event's line has no line end, and may be a piece of a line */
    struct import_sender sender;
};

/* Count one rejected event.  Lines of NDJSON are sent unparsed, so such a line may not be JSON at
 * all. Then the line counts as malformed, as it would in a log. */
static void take_reject(struct import *import, size_t index, const char *detail)
{
    uint64_t number = import_batch_line(import->batch, index);
    if (import->parser.format == LOG_FORMAT_NDJSON &&
        !import_batch_is_object(import->batch, index)) {
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
    *(answer->replayed ? &import->report.before : &import->report.accepted) += answer->accepted;
    for (size_t i = 0; i < answer->n_rejects && unlisted > 0; i++, unlisted--) {
        take_reject(import, first + answer->rejects[i].index, answer->rejects[i].detail);
        next = answer->rejects[i].index + 1;
    }
    /* The server lists only the first rejects.  The others may still be seen to be no JSON. */
    for (; unlisted > 0 && next < count && import->parser.format == LOG_FORMAT_NDJSON; next++) {
        if (!import_batch_is_object(import->batch, first + next)) {
            take_reject(import, first + next, "");
            unlisted--;
        }
    }
    import->report.rejected += unlisted;
}

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
        take_answer(import, first, n, &answer);
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

/* The levels that keep the time @at_s, as bits of import_report.kept. */
static unsigned kept_of(const struct import *import, int64_t at_s)
{
    unsigned levels = 0;
    for (unsigned i = 0; i < IMPORT_LEVELS; i++) {
        levels |= at_s >= import->oldest_s[i] ? 1u << i : 0;
    }
    return levels;
}

/* Take a request: its line is left out, or added to the batch. */
static void take_request(struct import *import, const struct log_line *line, uint64_t number)
{
    char host[SITE_OF_HOST_MAX];
    struct slice site = {0};
    enum import_class class = import_filter_class(&import->options.filter, line);
    if (class != IMPORT_PAGE_VIEW) {
        import->report.left_out[class]++;
        return;
    }
    if (import->options.site_from_host && line->host.n == 0) {
        import->without_host++;
    } else if (import->options.site_from_host && !site_of_host(line->host, host, &site)) {
        import_report_malformed(&import->report, number, "the host is not the name of a site");
        return;
    }
    import->report.kept[kept_of(import, line->at_s)]++;
    import_batch_add_event(import->batch, line, site, number);
}

static void take_line(struct import *import, struct slice text)
{
    uint64_t number = line_reader_number(import->reader);
    size_t before = import_batch_count(import->batch);
    struct log_line line;
    const char *detail;
    switch (log_parser_read(&import->parser, text, &line, &detail)) {
    case LOG_REQUEST:
        take_request(import, &line, number);
        break;
    case LOG_EVENT:
        if (!import_batch_add_json(import->batch, text, number)) {
            import_report_malformed(&import->report, number, "not a JSON object");
        }
        break;
    case LOG_BLANK:
        import->report.blank++;
        break;
    case LOG_MALFORMED:
        import_report_malformed(&import->report, number, detail);
        break;
    }
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

/* Read and send the whole file.  False: that ended early. */
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

/* Write the names of the levels whose bits are set: "days and months". */
static void list_levels(unsigned levels, const char *const names[IMPORT_LEVELS], char ret[128])
{
    size_t n = 0;
    ret[0] = '\0';
    for (unsigned i = 0; i < IMPORT_LEVELS; i++) {
        unsigned coarser = levels >> (i + 1);
        if ((levels >> i & 1) != 0) {
            n += (size_t)snprintf(ret + n, 128 - n, "%s%s", names[i],
                coarser == 0                     ? ""
                : (coarser & (coarser - 1)) == 0 ? " and "
                                                 : ", ");
        }
    }
}

/* Say how many lines have a time that only @levels keep. */
static void say_old(struct import *import, unsigned levels)
{
    static const char *const names[IMPORT_LEVELS] = {"minutes", "hours", "days", "months"};
    static const char *const options[IMPORT_LEVELS] = {
        "--keep-minutes", "--keep-hours", "--keep-days", "--keep-months"};
    struct import_report *report = &import->report;
    unsigned missing = ~levels & ((1u << IMPORT_LEVELS) - 1), coarsest = IMPORT_LEVELS - 1;
    while ((missing >> coarsest & 1) == 0) {
        coarsest--;
    }
    char kept[128], gone[128], longer[128];
    list_levels(levels, names, kept);
    list_levels(missing, names, gone);
    list_levels(missing, options, longer);
    import_report_say(report,
        "%" PRIu64
        " lines are older than %s: their %s are kept, their %s are not (a longer %s of the "
        "server keeps them)",
        report->kept[levels], import->options.keep[coarsest].text, kept, gone, longer);
}

static bool filters(const struct import_filter *filter)
{
    return filter->excluded != 0 || filter->n_exclude > 0 || filter->n_only > 0;
}

static void finish(struct import *import)
{
    struct import_report *report = &import->report;
    if (report->left_out[IMPORT_MALFORMED] > 0 && import->parser.format == LOG_FORMAT_AUTO) {
        import_report_say(report, "no line is in a format that is known; see --format");
    }
    /* The server rejects lines whose time no level keeps. */
    for (unsigned levels = (1u << IMPORT_LEVELS) - 2; levels > 0 && report->accepted > 0;
         levels--) {
        if (report->kept[levels] > 0) {
            say_old(import, levels);
        }
    }
    if (import->without_host > 0) {
        import_report_say(report,
            "%" PRIu64 " page views are of lines that name no host: their site is %s",
            import->without_host, import->options.site != NULL ? import->options.site : "default");
    }
    if (import->parser.format == LOG_FORMAT_NDJSON && filters(&import->options.filter)) {
        import_report_say(report, "the lines are events, so no class and no path was left out");
    }
    import_report_finish(report, line_reader_number(import->reader), import->options.json);
}

/* The server cuts hours and days in its sites' zones.  Here they are those of UTC. */
static void find_oldest(struct import *import)
{
    static const int64_t length_s[IMPORT_LEVELS] = {60, 3600, 86400, 31 * 86400};
    for (unsigned i = 0; i < IMPORT_LEVELS; i++) {
        int64_t keep_s = import->options.keep[i].s;
        int64_t oldest_s = (int64_t)time(NULL) - keep_s;
        import->oldest_s[i] = keep_s == IMPORT_KEEP_FOREVER ? INT64_MIN
                              : i == IMPORT_LEVELS - 1      ? oldest_s - length_s[i]
                                                            : oldest_s / length_s[i] * length_s[i];
    }
}

static bool set_up(struct import *import)
{
    const struct import_options *options = &import->options;
    log_parser_init(
        &import->parser, options->format, options->nginx.n > 0 ? &options->nginx : NULL);
    find_oldest(import);
    import_report_init(&import->report);
    import->reader = line_reader_open(options->path);
    if (import->reader == NULL) {
        import_report_say(&import->report, "cannot open %s: %s", options->path, strerror(errno));
        return false;
    }
    import->batch = import_batch_new(options->site);
    import->upload = import_upload_new(options->url, options->token);
    if (sodium_init() < 0 || import->batch == NULL || import->upload == NULL) {
        import_report_say(&import->report, "out of memory");
        return false;
    }
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
    int status = EXIT_INCOMPLETE;
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

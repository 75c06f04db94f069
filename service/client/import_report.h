/* import_report.h - what `tallyd import` prints while it runs, and when it is done.
 *
 * Layer: service/client.  Not thread-safe.
 * The progress bar, named lines and notes go to stderr, and the summary goes to stdout.
 */
#ifndef SERVICE_CLIENT_IMPORT_REPORT_H
#define SERVICE_CLIENT_IMPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "service/client/import_filter.h"

/* So many malformed lines are named, and as many rejected ones. */
#define IMPORT_REPORT_NAMED 10

struct import_report {
    uint64_t accepted, rejected;           /* events */
    uint64_t before;                       /* events that an earlier import had counted */
    uint64_t dropped;                      /* events that the server dropped: --bots, ignore-ip */
    uint64_t in_doubt;                     /* events that were sent, and may be counted */
    uint64_t blank;                        /* blank lines and directives */
    uint64_t left_out[IMPORT_CLASS_COUNT]; /* lines of each class */
    uint64_t kept[16]; /* events by the levels that keep their time: 1 minutes, 2 hours, .. */

    /* Fields below are the report's own. */
    unsigned malformed_named, rejected_named;
    bool has_bar, bar_shown;
    int64_t started_ms, drawn_ms; /* monotonic */
};

/* Begin to count.  A bar is drawn if stderr is a terminal. */
void import_report_init(struct import_report *report);

/* Count line @number as malformed, and name it if it is one of the first. */
void import_report_malformed(struct import_report *report, uint64_t number, const char *detail);

/* Name rejected line @number if it is one of the first.  The caller counts rejected lines, because
 * the server does not list all of them. */
void import_report_rejected(struct import_report *report, uint64_t number, const char *detail);

/* Print a line "tallyd import: ..." on stderr, in place of the bar. */
void import_report_say(struct import_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Is stderr a terminal, and is the bar to be drawn again?  Cheap enough for every line. */
bool import_report_due(const struct import_report *report);

/* Draw the bar: @consumed of @total bytes.  @total is -1 if not known. */
void import_report_progress(struct import_report *report, int64_t consumed, int64_t total);

/* Wipe the bar, and print the summary of @lines lines, and a sentence that says what was left out.
 * @json: print one object instead, {"lines", "counted", "left_out": {CLASS: n..}}.  Each line is in
 * "counted", in "left_out", or in a member that is there only if it is not 0: "blank", "rejected",
 * "counted_before", "dropped", "in_doubt". */
void import_report_finish(struct import_report *report, uint64_t lines, bool json);

#endif

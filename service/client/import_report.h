/* import_report.h - what `tallyd import` says while it runs and when it is done.
 *
 * Layer: service/client.  Not thread-safe.  The bar, the lines that are named and all notes go to
 * stderr, the summary to stdout.  The only place of import with a clock.
 */
#ifndef SERVICE_CLIENT_IMPORT_REPORT_H
#define SERVICE_CLIENT_IMPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* Only the first so many malformed, and as many rejected, lines are named. */
#define IMPORT_REPORT_NAMED 10

struct import_report {
    uint64_t accepted, rejected, malformed, other_methods;
    uint64_t before;   /* counted by an earlier run */
    uint64_t in_doubt; /* sent, not known to be counted */
    uint64_t blank;
    uint64_t kept[16]; /* events by what is kept of their time: bit 0 minutes .. bit 3 months */

    /* Fields below are the report's own. */
    unsigned malformed_named, rejected_named;
    bool has_bar, bar_shown;
    int64_t started_ms, drawn_ms; /* monotonic */
};

void import_report_init(struct import_report *report);

/* Line @number is malformed: count it, and name it if it is one of the first. */
void import_report_malformed(struct import_report *report, uint64_t number, const char *detail);

/* Name rejected line @number if it is one of the first.  (The caller counts: the server does not
 * list them all.) */
void import_report_rejected(struct import_report *report, uint64_t number, const char *detail);

/* A line "tallyd import: ..." on stderr, clear of the bar. */
void import_report_say(struct import_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Is stderr a terminal, and is it time to draw the bar again?  Cheap enough to ask for every line.
 */
bool import_report_due(const struct import_report *report);

/* Draw the bar.  @total: -1 if not known. */
void import_report_progress(struct import_report *report, int64_t consumed, int64_t total);

/* Wipe the bar, print the summary. */
void import_report_finish(struct import_report *report, uint64_t lines);

#endif

#include "service/client/import_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "storage/base/clock.h"

#define REDRAW_MS 200
#define BAR_CELLS 20

static double elapsed_s(const struct import_report *report)
{
    int64_t ms = monotonic_ms() - report->started_ms;
    return (double)(ms > 0 ? ms : 1) / 1000.0;
}

void import_report_init(struct import_report *report)
{
    *report = (struct import_report){0};
    report->started_ms = monotonic_ms();
    report->has_bar = isatty(STDERR_FILENO) == 1;
}

static void wipe(struct import_report *report)
{
    if (report->bar_shown) {
        fputs("\r\033[K", stderr);
    }
    report->bar_shown = false;
}

void import_report_say(struct import_report *report, const char *format, ...)
{
    wipe(report);
    fputs("tallyd import: ", stderr);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void import_report_malformed(struct import_report *report, uint64_t number, const char *detail)
{
    report->left_out[IMPORT_MALFORMED]++;
    if (report->malformed_named++ < IMPORT_REPORT_NAMED) {
        import_report_say(report, "line %" PRIu64 " is malformed: %s", number, detail);
    }
}

void import_report_rejected(struct import_report *report, uint64_t number, const char *detail)
{
    if (report->rejected_named++ < IMPORT_REPORT_NAMED) {
        import_report_say(report, "line %" PRIu64 " was rejected: %s", number, detail);
    }
}

/* Draw "[######..............]  30 %  5.1 of 17.1 MB". */
static void draw_share(int64_t consumed, int64_t total)
{
    char cells[BAR_CELLS + 1];
    double share = consumed >= total ? 1.0 : (double)consumed / (double)total;
    for (int i = 0; i < BAR_CELLS; i++) {
        cells[i] = i < (int)(share * BAR_CELLS) ? '#' : '.';
    }
    cells[BAR_CELLS] = '\0';
    fprintf(stderr, "[%s] %3d %%  %.1f of %.1f MB", cells, (int)(share * 100.0),
        (double)consumed / 1e6, (double)total / 1e6);
}

bool import_report_due(const struct import_report *report)
{
    return report->has_bar && monotonic_ms() - report->drawn_ms >= REDRAW_MS;
}

void import_report_progress(struct import_report *report, int64_t consumed, int64_t total)
{
    report->drawn_ms = monotonic_ms();
    report->bar_shown = true;
    fputc('\r', stderr);
    if (total > 0) {
        draw_share(consumed, total);
    } else {
        fprintf(stderr, "%.1f MB", (double)consumed / 1e6);
    }
    fprintf(stderr, "  %.0f events/s", (double)report->accepted / elapsed_s(report));
    if (report->rejected > 0) {
        fprintf(stderr, "  %" PRIu64 " rejected", report->rejected);
    }
    fputs("\033[K", stderr);
    (void)fflush(stderr);
}

static void print_count(const char *name, uint64_t count)
{
    printf("%-15s %" PRIu64 "\n", name, count);
}

static void print_any(const char *name, uint64_t count)
{
    if (count > 0) {
        print_count(name, count);
    }
}

static uint64_t sum_left_out(const struct import_report *report)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < IMPORT_CLASS_COUNT; i++) {
        sum += report->left_out[i];
    }
    return sum;
}

/* Print "; dropped by the server: 12 (its --bots or ignore-ip)", and the number of rejected
 * events. */
static void print_dropped(const struct import_report *report)
{
    if (report->dropped > 0) {
        printf("; dropped by the server: %" PRIu64 " (its --bots or ignore-ip)", report->dropped);
    }
    if (report->rejected > 0) {
        printf("; rejected: %" PRIu64, report->rejected);
    }
}

/* Print "2161 of 10000 lines are page views; left out: 1 malformed, 2169 robot, 5699 file (..)". */
static void print_left_out(const struct import_report *report, uint64_t lines)
{
    uint64_t left_out = sum_left_out(report);
    const char *separator = "; left out: ";
    printf("%" PRIu64 " of %" PRIu64 " lines are page views",
        lines - report->blank - left_out - report->dropped - report->rejected,
        lines - report->blank);
    for (enum import_class class = 0; class < IMPORT_CLASS_COUNT; class ++) {
        if (report->left_out[class] > 0) {
            printf(
                "%s%" PRIu64 " %s", separator, report->left_out[class], import_class_name(class));
            separator = ", ";
        }
    }
    if (left_out > report->left_out[IMPORT_MALFORMED] + report->left_out[IMPORT_PATH]) {
        fputs(" (--include CLASS counts one, --all all that are GET, HEAD or POST)", stdout);
    }
    print_dropped(report);
    putchar('\n');
}

static void print_member(const char *name, uint64_t count)
{
    if (count > 0) {
        printf(",\"%s\":%" PRIu64, name, count);
    }
}

static void print_object(const struct import_report *report, uint64_t lines)
{
    printf(
        "{\"lines\":%" PRIu64 ",\"counted\":%" PRIu64 ",\"left_out\":{", lines, report->accepted);
    for (enum import_class class = 0; class < IMPORT_CLASS_COUNT; class ++) {
        if (class != IMPORT_PATH || report->left_out[class] > 0) {
            printf("%s\"%s\":%" PRIu64, class == 0 ? "" : ",", import_class_name(class),
                report->left_out[class]);
        }
    }
    putchar('}');
    print_member("blank", report->blank);
    print_member("rejected", report->rejected);
    print_member("counted_before", report->before);
    print_member("dropped", report->dropped);
    print_member("in_doubt", report->in_doubt);
    puts("}");
}

void import_report_finish(struct import_report *report, uint64_t lines, bool json)
{
    double seconds = elapsed_s(report);
    wipe(report);
    if (json) {
        print_object(report, lines);
        return;
    }
    print_count("lines", lines);
    print_count("events accepted", report->accepted);
    print_count("rejected", report->rejected);
    print_count("malformed", report->left_out[IMPORT_MALFORMED]);
    print_count("other methods", report->left_out[IMPORT_METHOD]);
    print_any("blank", report->blank);
    print_any("counted before", report->before);
    print_any("dropped", report->dropped);
    print_any("in doubt", report->in_doubt);
    printf("%-15s %.1f\n%-15s %.0f\n", "seconds", seconds, "events/s",
        (double)report->accepted / seconds);
    print_left_out(report, lines);
}

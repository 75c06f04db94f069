/* access_log_tool.c - what line_reader and access_log make of a file, as counts.
 *
 * For comparing them with what another program counted in the same log:
 *     access_log_tool [--common] [--events] FILE
 * --events prints each event as "time<TAB>host<TAB>page<TAB>user agent" instead of the counts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/client/access_log.h"
#include "service/client/line_reader.h"

struct counts {
    uint64_t lines, events, malformed, other_methods, names;
    int64_t first_s, last_s;
};

static void print_event(const struct access_log_line *event)
{
    printf("%" PRId64 "\t%.*s\t%.*s\t%.*s\n", event->at_s, (int)event->host.n, event->host.p,
        (int)event->page.n, event->page.p, (int)event->ua.n, event->ua.n ? event->ua.p : "");
}

static void count_event(struct counts *counts, const struct access_log_line *event)
{
    if (counts->events++ == 0) {
        counts->first_s = counts->last_s = event->at_s;
    }
    if (event->at_s < counts->first_s) {
        counts->first_s = event->at_s;
    }
    if (event->at_s > counts->last_s) {
        counts->last_s = event->at_s;
    }
    counts->names += !event->host_is_ip;
}

static void count_line(
    struct counts *counts, struct slice text, enum access_log_format format, bool print)
{
    struct access_log_line event;
    const char *detail;

    switch (access_log_parse(text, format, &event, &detail)) {
    case ACCESS_LOG_EVENT:
        count_event(counts, &event);
        if (print) {
            print_event(&event);
        }
        break;
    case ACCESS_LOG_OTHER_METHOD:
        counts->other_methods++;
        break;
    case ACCESS_LOG_MALFORMED:
        counts->malformed++;
        fprintf(stderr, "line %" PRIu64 ": %s\n", counts->lines, detail);
        break;
    }
}

static bool count_file(
    struct line_reader *reader, enum access_log_format format, bool print, struct counts *counts)
{
    for (;;) {
        struct slice text;

        switch (line_reader_next(reader, &text)) {
        case LINE_READER_LINE:
            counts->lines++;
            count_line(counts, text, format, print);
            break;
        case LINE_READER_TOO_LONG:
            counts->lines++;
            counts->malformed++;
            break;
        case LINE_READER_END:
            return true;
        case LINE_READER_ERROR:
            fprintf(stderr, "behind line %" PRIu64 ": %s\n", line_reader_number(reader),
                line_reader_error(reader));
            return false;
        }
    }
}

int main(int argc, char **argv)
{
    enum access_log_format format = ACCESS_LOG_COMBINED;
    struct counts counts = {0};
    struct line_reader *reader;
    bool print = false, whole;

    for (; argc > 2; argc--, argv++) {
        if (strcmp(argv[1], "--common") == 0) {
            format = ACCESS_LOG_COMMON;
        }
        print = print || strcmp(argv[1], "--events") == 0;
    }
    reader = argc == 2 ? line_reader_open(argv[1]) : NULL;
    if (!reader) {
        fprintf(stderr, "%s\n", argc == 2 ? strerror(errno) : "usage: access_log_tool [..] FILE");
        return EXIT_FAILURE;
    }
    whole = count_file(reader, format, print, &counts);
    line_reader_close(reader);
    if (!print) {
        printf("lines %" PRIu64 "\nevents %" PRIu64 "\nmalformed %" PRIu64 "\nother_method %" PRIu64
               "\nnames %" PRIu64 "\nfirst_s %" PRId64 "\nlast_s %" PRId64 "\n",
            counts.lines, counts.events, counts.malformed, counts.other_methods, counts.names,
            counts.first_s, counts.last_s);
    }
    return whole ? EXIT_SUCCESS : EXIT_FAILURE;
}

#include "service/client/import_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "handlers/text/timestamp.h"
#include "service/client/import_filter.h"
#include "storage/time/units.h"

/* The server cuts hours and days in its sites' zones.  This function cuts them in UTC. */
static void find_oldest(struct import_lines *lines)
{
    static const int64_t length_s[IMPORT_LEVELS] = {MINUTE_S, HOUR_S, DAY_S, 31 * DAY_S};
    for (unsigned i = 0; i < IMPORT_LEVELS; i++) {
        int64_t keep_s = lines->options->keep[i].s;
        int64_t oldest_s = (int64_t)time(NULL) - keep_s;
        lines->oldest_s[i] = keep_s == IMPORT_KEEP_FOREVER ? INT64_MIN
                             : i == IMPORT_LEVELS - 1      ? oldest_s - length_s[i]
                                                           : oldest_s / length_s[i] * length_s[i];
    }
}

void import_lines_init(struct import_lines *ret, const struct import_options *options,
    struct import_batch *batch, struct import_report *report)
{
    *ret = (struct import_lines){.options = options,
        .batch = batch,
        .report = report,
        .first_s = INT64_MAX,
        .last_s = INT64_MIN};
    log_parser_init(&ret->parser, options->format, options->nginx.n > 0 ? &options->nginx : NULL);
    find_oldest(ret);
}

/* Count one rejected event.  Lines of NDJSON are sent unparsed, so such a line may not be JSON at
 * all. Then the line counts as malformed, as it would in a log. */
static void take_reject(struct import_lines *lines, size_t index, const char *detail)
{
    uint64_t number = import_batch_line(lines->batch, index);
    if (lines->parser.format == LOG_FORMAT_NDJSON && !import_batch_is_object(lines->batch, index)) {
        import_report_malformed(lines->report, number, "not a JSON object");
    } else {
        lines->report->rejected++;
        import_report_rejected(lines->report, number, detail);
    }
}

void import_lines_answered(struct import_lines *lines, size_t first, size_t count,
    const struct import_upload_answer *answer)
{
    uint64_t unlisted = answer->rejected;
    size_t next = 0;
    *(answer->replayed ? &lines->report->before : &lines->report->accepted) += answer->accepted;
    lines->report->dropped += answer->dropped;
    for (size_t i = 0; i < answer->n_rejects && unlisted > 0; i++, unlisted--) {
        take_reject(lines, first + answer->rejects[i].index, answer->rejects[i].detail);
        next = answer->rejects[i].index + 1;
    }
    /* The server lists only the first rejects.  Of the others, those that are no JSON are found. */
    for (; unlisted > 0 && next < count && lines->parser.format == LOG_FORMAT_NDJSON; next++) {
        if (!import_batch_is_object(lines->batch, first + next)) {
            take_reject(lines, first + next, "");
            unlisted--;
        }
    }
    lines->report->rejected += unlisted;
}

/* The levels that keep the time @at_s, as bits of import_report.kept. */
static unsigned kept_of(const struct import_lines *lines, int64_t at_s)
{
    unsigned levels = 0;
    for (unsigned i = 0; i < IMPORT_LEVELS; i++) {
        levels |= at_s >= lines->oldest_s[i] ? 1u << i : 0;
    }
    return levels;
}

bool import_site_of_host(struct slice host, char *to, struct slice *ret)
{
    struct slice name = log_without_port(host);
    if (name.n > 0 && name.p[name.n - 1] == '.') {
        name.n--;
    }
    if (name.n > EVENT_SITE_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        to[i] = ascii_lower(name.p[i]);
    }
    struct slice site = {to, name.n};
    if (event_check_site(site) != NULL) {
        return false;
    }
    *ret = site;
    return true;
}

/* Take a request: its line is left out, or added to the batch. */
static void take_request(struct import_lines *lines, const struct log_line *line, uint64_t number)
{
    char host[EVENT_SITE_MAX];
    struct slice site = {0};
    enum import_class class = import_filter_class(&lines->options->filter, line);
    if (class != IMPORT_PAGE_VIEW) {
        lines->report->left_out[class]++;
        return;
    }
    if (lines->options->site_from_host && line->host.n == 0) {
        lines->without_host++;
    } else if (lines->options->site_from_host && !import_site_of_host(line->host, host, &site)) {
        import_report_malformed(lines->report, number, "the host is not the name of a site");
        return;
    }
    lines->report->kept[kept_of(lines, line->at_s)]++;
    lines->first_s = line->at_s < lines->first_s ? line->at_s : lines->first_s;
    lines->last_s = line->at_s > lines->last_s ? line->at_s : lines->last_s;
    import_batch_add_event(lines->batch, line, site, number);
}

void import_lines_take(struct import_lines *lines, struct slice text, uint64_t number)
{
    struct log_line line;
    const char *detail;
    switch (log_parser_read(&lines->parser, text, &line, &detail)) {
    case LOG_REQUEST:
        take_request(lines, &line, number);
        break;
    case LOG_EVENT:
        if (!import_batch_add_json(lines->batch, text, number)) {
            import_report_malformed(lines->report, number, "not a JSON object");
        }
        break;
    case LOG_BLANK:
        lines->report->blank++;
        break;
    case LOG_MALFORMED:
        import_report_malformed(lines->report, number, detail);
        break;
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
static void say_old(const struct import_lines *lines, unsigned levels)
{
    static const char *const names[IMPORT_LEVELS] = {"minutes", "hours", "days", "months"};
    static const char *const options[IMPORT_LEVELS] = {
        "--keep-minutes", "--keep-hours", "--keep-days", "--keep-months"};
    struct import_report *report = lines->report;
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
        report->kept[levels], lines->options->keep[coarsest].text, kept, gone, longer);
}

/* Say when the page views were: an old log is not in the windows that people usually ask for. */
static void say_window(const struct import_lines *lines)
{
    char first[TIMESTAMP_TEXT], last[TIMESTAMP_TEXT];
    timestamp_print(lines->first_s, first);
    timestamp_print(lines->last_s, last);
    import_report_say(lines->report, "the page views are from %s to %s", first, last);
}

static bool filters(const struct import_filter *filter)
{
    return filter->excluded != 0 || filter->n_exclude > 0 || filter->n_only > 0;
}

void import_lines_finish(const struct import_lines *lines)
{
    struct import_report *report = lines->report;
    if (report->left_out[IMPORT_MALFORMED] > 0 && lines->parser.format == LOG_FORMAT_AUTO) {
        import_report_say(report, "no line is in a format that is known; see --format");
    }
    /* The server rejects lines whose time no level keeps. */
    bool any_old = false;
    for (unsigned levels = (1u << IMPORT_LEVELS) - 2; levels > 0 && report->accepted > 0;
         levels--) {
        if (report->kept[levels] > 0) {
            say_old(lines, levels);
            any_old = true;
        }
    }
    if (any_old) {
        say_window(lines);
    }
    if (lines->without_host > 0) {
        import_report_say(report,
            "%" PRIu64 " page views are of lines that name no host: their site is %s",
            lines->without_host, import_options_site(lines->options));
    }
    if (lines->parser.format == LOG_FORMAT_NDJSON && filters(&lines->options->filter)) {
        import_report_say(report, "the lines are events, so no class and no path was left out");
    }
}

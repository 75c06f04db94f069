/* import_lines.h - make events of a file's lines, and account for what became of them.
 *
 * Layer: service/client, no I/O but what import_report.h prints.  Not thread-safe.
 *
 * `tallyd import` and its --follow read their files in different ways, but both use these functions
 * for the lines.  So the same bytes give the same events in both.
 */
#ifndef SERVICE_CLIENT_IMPORT_LINES_H
#define SERVICE_CLIENT_IMPORT_LINES_H

#include <stdint.h>

#include "service/client/import_batch.h"
#include "service/client/import_options.h"
#include "service/client/import_report.h"
#include "service/client/import_upload.h"
#include "service/formats/log_format.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

struct import_lines {
    const struct import_options *options; /* borrowed, like the next two */
    struct import_batch *batch;
    struct import_report *report;
    struct log_parser parser;
    int64_t oldest_s[IMPORT_LEVELS]; /* UTC; a level keeps nothing older */
    int64_t first_s, last_s; /* UTC; times of the first and last page view of an access log */
    uint64_t without_host;   /* page views whose log line names no host, for the site */
};

/* Lines go to @batch, and are counted in @report.  All arguments outlive @ret. */
void import_lines_init(struct import_lines *ret, const struct import_options *options,
    struct import_batch *batch, struct import_report *report);

/* Take line @number of the file, @text without its line end.  At most one event is added to the
 * batch, which must not be full. */
void import_lines_take(struct import_lines *lines, struct slice text, uint64_t number);

/* Count what the server said about events [@first, @first + @count) of the batch. */
void import_lines_answered(struct import_lines *lines, size_t first, size_t count,
    const struct import_upload_answer *answer);

/* Write the name of @host's site to @to, EVENT_SITE_MAX bytes: lower case, without a port, and
 * without the dot at the end that a full name may have.  *ret is that name.  False: no site may
 * have it, as [2001:db8::1]. */
bool import_site_of_host(struct slice host, char *to, struct slice *ret) MUST_CHECK;

/* All lines were taken: print the notes about the file as a whole. */
void import_lines_finish(const struct import_lines *lines);

#endif

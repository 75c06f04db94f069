/* w3c.h - W3C extended log files: Microsoft's IIS and Amazon's CloudFront.
 *
 * Layer: service/formats, pure: no I/O, no clock, no allocation.  Not thread-safe.
 *
 * A line that begins with '#' is a directive.  "#Fields:" names the columns of the lines behind;
 * another one may follow, as when IIS was configured anew.  Columns are separated by blanks in IIS,
 * and by tabs in CloudFront.  Times are UTC.
 *
 * A user agent is escaped by the server: IIS writes a plus for a blank, CloudFront %20 and so on.
 * That is undone, so that a browser is the same visitor in every log.  An IIS plus before "http"
 * stays: robots begin their address so.  A page is as the server wrote it.
 *
 * Sources: www.w3.org/TR/WD-logfile.html; learn.microsoft.com, "W3C Extended Log File Format";
 * docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html.
 */
#ifndef SERVICE_FORMATS_W3C_H
#define SERVICE_FORMATS_W3C_H

#include "service/formats/log_fields.h"

#define W3C_COLUMNS_MAX 128

enum w3c_server { W3C_IIS, W3C_CLOUDFRONT };

/* A zeroed struct knows no columns. */
struct w3c {
    size_t n;                                          /* 0: no "#Fields:" was read */
    const struct log_member *columns[W3C_COLUMNS_MAX]; /* NULL: the column is passed over */
};

/* Is @line a directive?  Its name must be one that the W3C defines. */
bool w3c_is_directive(struct slice line) MUST_CHECK;

/* Take a directive.  True: the directive named the columns, and *ret_server is the server that
 * writes such columns. */
bool w3c_take_directive(struct w3c *w3c, struct slice line, enum w3c_server *ret_server);

/* Parse @line.  @scratch, LOG_LINE_MAX bytes, holds what is unescaped; *ret points there or into
 * the line.  NULL, or what is wrong (static); then *ret is untouched. */
const char *w3c_parse(const struct w3c *w3c, enum w3c_server server, struct slice line,
    char *scratch, struct log_line *ret) MUST_CHECK;

#endif

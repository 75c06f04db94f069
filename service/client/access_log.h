/* access_log.h - read one line of an Apache access log as a page view.
 *
 * Layer: service/client, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 * The common format is
 *     HOST IDENT USER [dd/Mon/yyyy:HH:MM:SS +hhmm] "METHOD TARGET HTTP/x" STATUS BYTES
 * and the combined format has "REFERRER" "USER AGENT" behind that.  What follows the user agent is
 * not looked at.  A backslash inside quotes takes the next byte with it.
 *
 * Nothing is unescaped: page and user agent are the bytes between the quotes.  So a visitor is what
 * the log says, letter by letter, and other tools that count the same file agree.
 *
 * Source: httpd.apache.org/docs/2.4/mod/mod_log_config.html (formats, escapes).
 */
#ifndef SERVICE_CLIENT_ACCESS_LOG_H
#define SERVICE_CLIENT_ACCESS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

enum access_log_format { ACCESS_LOG_COMBINED, ACCESS_LOG_COMMON };

enum access_log_result {
    ACCESS_LOG_EVENT,        /* GET, HEAD or POST, whatever the status */
    ACCESS_LOG_OTHER_METHOD, /* a well-formed line that is no page view */
    ACCESS_LOG_MALFORMED,    /* no valid time, request or (combined) quoted fields */
};

enum access_log_method {
    ACCESS_LOG_GET,
    ACCESS_LOG_HEAD,
    ACCESS_LOG_POST,
    ACCESS_LOG_OTHER,
};

/* Slices point into the line. */
struct access_log_line {
    struct slice host; /* never empty */
    bool host_is_ip;   /* IPv4 or IPv6; else a host name, or anything else */
    int64_t at_s;      /* UTC, the log's offset applied; never negative */
    enum access_log_method method;
    struct slice page; /* the target up to '?'; not empty; UTF-8 without control characters */
    struct slice ua;   /* UTF-8 without NUL.  In the common format p is NULL; for `""` p is set */
};

/* Parse @line, which has no line end.  *ret is written for ACCESS_LOG_EVENT and
 * ACCESS_LOG_OTHER_METHOD.  *ret_detail, a static text, is written for ACCESS_LOG_MALFORMED.
 * Second 60 counts as 59.  Only the fields that are sent must be UTF-8: no page view is lost
 * because of its referrer. */
enum access_log_result access_log_parse(struct slice line, enum access_log_format format,
    struct access_log_line *ret, const char **ret_detail) MUST_CHECK;

#endif

/* access_log.h - one line of an Apache access log (common or combined format) as a page view.
 *
 * Layer: service/client, pure (no I/O, no clock, no allocation).  Thread-safe.
 * Shape: HOST IDENT USER [dd/Mon/yyyy:HH:MM:SS +hhmm] "METHOD TARGET HTTP/x" STATUS BYTES, and for
 *        combined "REFERRER" "USER AGENT" behind it; whatever follows the user agent is not looked
 * at. Quotes: a backslash inside quotes takes the next byte with it.  Nothing is unescaped: page
 * and user agent are the bytes between the quotes, so that the visitor is what the log says, letter
 * by letter, and other tools that count the same file agree. Source:
 * httpd.apache.org/docs/2.4/mod/mod_log_config.html (formats, escapes).
 */
#ifndef SERVICE_CLIENT_ACCESS_LOG_H
#define SERVICE_CLIENT_ACCESS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

enum access_log_format { ACCESS_LOG_COMBINED, ACCESS_LOG_COMMON };

enum access_log_result {
    ACCESS_LOG_EVENT,        /* GET, HEAD or POST, whatever the status */
    ACCESS_LOG_OTHER_METHOD, /* well-formed, but no page view */
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
    bool host_is_ip;   /* IPv4 or IPv6; else a host name, or anything else that stood there */
    int64_t at_s;      /* UTC, the log's offset applied; never negative */
    enum access_log_method method;
    struct slice
        page;        /* target up to the first '?'; never empty; UTF-8 without control characters */
    struct slice ua; /* UTF-8 without NUL; common: p is NULL, n 0 (combined `""`: p is set, n 0) */
};

/* Parse @line (without its line end).  *ret is written only for ACCESS_LOG_EVENT and
 * ACCESS_LOG_OTHER_METHOD; *ret_detail (static text, what is wrong) only for ACCESS_LOG_MALFORMED.
 * Second 60 counts as 59.  Only the fields that are sent must be UTF-8: a page view does not get
 * lost for its referrer. */
enum access_log_result access_log_parse(struct slice line, enum access_log_format format,
    struct access_log_line *ret, const char **ret_detail);

#endif

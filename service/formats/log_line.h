/* log_line.h - what one line of an access log says of one request.
 *
 * Layer: service/formats, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 * Every format's parser fills a log_line with the functions below, so a request means the same
 * whatever wrote the log.  Page and user agent are as in the log, letter by letter; only what a
 * format escapes by itself is unescaped.  So other tools that count the same file agree.
 *
 * A function that returns a text returns NULL, or what is wrong with the line (static).
 */
#ifndef SERVICE_FORMATS_LOG_LINE_H
#define SERVICE_FORMATS_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* No line is longer, in bytes. */
#define LOG_LINE_MAX 65536

enum log_method { LOG_GET, LOG_HEAD, LOG_POST, LOG_OTHER };

/* Slices point into the line, or into what the parser has unescaped. */
struct log_line {
    struct slice client; /* the client's address or name, never empty */
    bool client_is_ip;   /* IPv4 or IPv6; else a host name, or anything else */
    int64_t at_s;        /* UTC, the log's offset applied; never negative */
    enum log_method method;
    unsigned status;       /* the response's; 0: the log does not say */
    struct slice page;     /* the target up to '?'; not empty; UTF-8 without control characters */
    struct slice target;   /* the same with the query, if the log has one; any bytes */
    struct slice query;    /* where the log keeps it apart from the target; any bytes */
    struct slice referrer; /* any bytes; n is 0 if the log does not say */
    struct slice ua;       /* UTF-8 without NUL.  p is NULL if the log has no such field */
    struct slice host;     /* the one asked, perhaps with a port; n is 0 if the log does not say */
};

/* Take "METHOD TARGET HTTP/x", the protocol optional.  Servers log what came, so a target may hold
 * blanks. */
const char *log_line_take_request(struct log_line *line, struct slice request) MUST_CHECK;

/* Take the name of a method, and a target with or without its query.  The page is the target as it
 * is written: one in absolute form, "http://HOST/PATH", is a page of its own. */
const char *log_line_take_method(struct log_line *line, struct slice name) MUST_CHECK;
const char *log_line_take_target(struct log_line *line, struct slice target) MUST_CHECK;

/* Take an address or a host's name. */
const char *log_line_take_client(struct log_line *line, struct slice client) MUST_CHECK;

/* Take a status of three digits; anything else counts as no status. */
void log_line_take_status(struct log_line *line, struct slice status);

/* Is the line, now complete, one that the server would take?  Only the fields that are sent must be
 * UTF-8: no page view is lost because of its referrer. */
const char *log_line_check(const struct log_line *line) MUST_CHECK;

/* "192.0.2.1:443" and "[2001:db8::1]:443" without the port, and without the brackets.  A text
 * without a port is returned as it is. */
struct slice log_without_port(struct slice address);

/* Cut off the front of @rest: the bytes up to a blank, at least one; or a quoted text, in which a
 * backslash takes the next byte with it.  The blank stays, and *ret has no quotes.  False: this
 * does not stand there, and nothing is cut. */
bool log_take_word(struct slice *rest, struct slice *ret) MUST_CHECK;
bool log_take_quoted(struct slice *rest, struct slice *ret) MUST_CHECK;

#endif

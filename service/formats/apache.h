/* apache.h - the access logs of Apache and nginx: common, combined, combined with a virtual host.
 *
 * Layer: service/formats, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 * The common format is
 *     HOST IDENT USER [dd/Mon/yyyy:HH:MM:SS +hhmm] "METHOD TARGET HTTP/x" STATUS BYTES
 * and the combined format, which is nginx's default, has "REFERRER" "USER AGENT" behind that.  The
 * format vhost is the combined one with the host that was asked, and perhaps its port, before:
 * Debian's other_vhosts_access.log.  What follows the user agent is not looked at.  A backslash
 * inside quotes takes the next byte with it.
 *
 * Nothing is unescaped: page and user agent are the bytes between the quotes.
 *
 * Source: httpd.apache.org/docs/2.4/mod/mod_log_config.html (formats, escapes, vhost_combined).
 */
#ifndef SERVICE_FORMATS_APACHE_H
#define SERVICE_FORMATS_APACHE_H

#include "service/formats/log_line.h"

enum apache_format { APACHE_COMMON, APACHE_COMBINED, APACHE_VHOST };

/* Parse @line, which has no line end.  Returns NULL, or what is wrong with the line: a static text.
 * Then *ret is untouched.  In the common format ret->ua.p is NULL; for `""` it is not. */
const char *apache_parse(
    struct slice line, enum apache_format format, struct log_line *ret) MUST_CHECK;

/* Does a virtual host stand before the client?  The two formats differ in one word, and a user's
 * name may hold blanks: so the first word must be no address, and have a port, or be followed by
 * an address. */
bool apache_begins_with_vhost(struct slice line) MUST_CHECK;

#endif

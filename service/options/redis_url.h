/* redis_url.h - the values --redis may have, checked before anybody connects, and shown without
 * their password.
 *
 * Layer: service, pure.  Thread-safe.  storage/redis/endpoint.h has the second.
 *     ""                                       the embedded Redis
 *     redis://[user:password@]host:port[/db]   user may be empty; user and password percent-encoded
 *     unix:/path                               at most 107 bytes of path
 */
#ifndef SERVICE_OPTIONS_REDIS_URL_H
#define SERVICE_OPTIONS_REDIS_URL_H

#include <stddef.h>

/* NULL if @url is one of the above, else what is allowed (static text, never a part of @url). */
const char *redis_url_check(const char *url);

/* The same for a list of servers with commas between, for --lock-redis; a comma in a password is
 * %2C.  Each stands once, and there are 1, or 3 to 9 of them: of two, both would be needed. */
const char *redis_url_list_check(const char *urls);

/* Write @url to @text (@room > 0 bytes, cut to fit, with a NUL) with everything that may be a
 * password replaced by "***", also where @url is malformed: errors are shown with it.
 * Takes lists too. */
void redis_url_mask(const char *url, char *text, size_t room);

#endif

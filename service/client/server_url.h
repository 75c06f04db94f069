/* server_url.h - check the server's address and the token that a client command is given.
 *
 * Layer: service/client, pure.  Thread-safe.
 */
#ifndef SERVICE_CLIENT_SERVER_URL_H
#define SERVICE_CLIENT_SERVER_URL_H

#include <stddef.h>

#include "storage/base/compiler.h"

#define SERVER_URL_DEFAULT  "http://127.0.0.1:8080"
#define SERVER_URL_EXPECTED "an http:// or https:// address without user, query or fragment"
#define TOKEN_EXPECTED      "printable ASCII without blanks"

enum server_url_verdict {
    SERVER_URL_GOOD,
    SERVER_URL_WRONG,
    SERVER_URL_UNCHECKED, /* there was no memory to check the address */
};

/* Is @url an http:// or https:// address without user, query and fragment?  A password would be
 * printed with the URL.  A query would swallow the path that is put behind the URL. */
enum server_url_verdict server_url_judge(const char *url) MUST_CHECK;

/* The length of @url without the slashes at its end. */
size_t server_url_length(const char *url);

#endif

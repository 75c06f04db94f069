/* server_url.h - check the server's address and the token that a client command is given.
 *
 * Layer: service/client, pure.  Thread-safe.
 */
#ifndef SERVICE_CLIENT_SERVER_URL_H
#define SERVICE_CLIENT_SERVER_URL_H

#include <stdbool.h>
#include <stddef.h>

#define SERVER_URL_DEFAULT  "http://127.0.0.1:8080"
#define SERVER_URL_EXPECTED "an http:// or https:// address without user, query or fragment"
#define TOKEN_EXPECTED      "printable ASCII without blanks"

/* Is @url an http:// or https:// address without user, query and fragment?  A password would be
 * printed with the URL.  A query would swallow the path that is put behind the URL. */
bool server_url_valid(const char *url);

/* The length of @url without the slashes at its end. */
size_t server_url_length(const char *url);

#endif

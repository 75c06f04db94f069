/* server_url.h - which server a client talks to, and with what.
 *
 * Layer: service/client, pure.  Thread-safe.
 */
#ifndef SERVICE_CLIENT_SERVER_URL_H
#define SERVICE_CLIENT_SERVER_URL_H

#include <stdbool.h>

#define SERVER_URL_DEFAULT  "http://127.0.0.1:8080"
#define SERVER_URL_EXPECTED "an http:// or https:// address without user, query or fragment"
#define TOKEN_EXPECTED      "printable ASCII without blanks"

/* A password in the URL would be printed with it; a query would swallow the path behind it. */
bool server_url_valid(const char *url);

/* A proxy of the environment is for the world outside, not for this machine. */
bool server_url_is_loopback(const char *url);

bool bearer_token_valid(const char *token);

#endif

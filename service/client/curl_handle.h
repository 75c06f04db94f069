/* curl_handle.h - what the HTTP requests of `tallyd import` and `tallyd query` have in common.
 *
 * Layer: service/client.  Thread safety: a handle belongs to one thread at a time.
 */
#ifndef SERVICE_CLIENT_CURL_HANDLE_H
#define SERVICE_CLIENT_CURL_HANDLE_H

#include <stdbool.h>

#include <curl/curl.h>

#include "storage/base/compiler.h"

/* Make @easy ready for HTTP/1.1 requests of @url by the name @agent.  The answer's bytes go to
 * @take, with @data.  @error, CURL_ERROR_SIZE bytes that outlive the handle, gets curl's text about
 * a failure.  A request ends after a minute, which is well over the server's own deadline
 * (--request-timeout, 10 s).  False: out of memory. */
bool curl_handle_set_up(CURL *easy, const char *url, const char *agent, curl_write_callback take,
    void *data, char *error) MUST_CHECK;

/* A list of @header and, if @token is not NULL, "Authorization: Bearer @token".  Free it with
 * curl_slist_free_all().  NULL: out of memory. */
struct curl_slist *curl_handle_headers(const char *header, const char *token) MUST_CHECK;

#endif

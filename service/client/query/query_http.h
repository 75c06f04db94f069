/* query_http.h - ask a tallyd one question: one GET and its answer.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 */
#ifndef SERVICE_CLIENT_QUERY_QUERY_HTTP_H
#define SERVICE_CLIENT_QUERY_QUERY_HTTP_H

#include <stdbool.h>

#include "service/client/query/query_options.h"

/* An answer.  A zeroed struct is empty.  query_answer_release() frees the text. */
struct query_answer {
    long status; /* HTTP; 0: no answer came */
    char *text;  /* owned, NUL-terminated */
    size_t n;
    bool is_starved; /* memory was out, so a part of the text is missing */
    char error[320]; /* if status is 0: the reason, as one line */
};

/* Ask, and take whatever answer comes within a minute.  *ret is written in any case. */
void query_http_get(const struct query_options *options, struct query_answer *ret);
void query_answer_release(struct query_answer *answer);

#endif

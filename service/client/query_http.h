/* query_http.h - one GET of a tallyd.
 *
 * Layer: service/client.  Blocking.
 */
#ifndef SERVICE_CLIENT_QUERY_HTTP_H
#define SERVICE_CLIENT_QUERY_HTTP_H

#include "service/client/query_options.h"

/* What came back; zeroed it is empty.  Release with query_answer_release. */
struct query_answer {
    long status; /* 0: none */
    char *text;  /* owned, NUL-terminated */
    size_t n;
    char error[320]; /* with status 0: why, one line */
};

/* Ask, and take whatever answer comes within a minute. */
void query_http_get(const struct query_options *options, struct query_answer *ret);
void query_answer_release(struct query_answer *answer);

#endif

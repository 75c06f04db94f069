/* query_http.h - ask a tallyd one question: one GET and its answer.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 */
#ifndef SERVICE_CLIENT_QUERY_QUERY_HTTP_H
#define SERVICE_CLIENT_QUERY_QUERY_HTTP_H

#include "service/client/query/query_options.h"
#include "storage/base/buffer.h"

struct query_answer {
    long status;        /* HTTP; 0: no answer came */
    struct buffer text; /* owned, also where no whole answer came */
    char error[320];    /* if status is 0: the reason, as one line */
};

/* Ask, and take whatever answer comes within a minute.  *ret is written in any case. */
void query_http_get(const struct query_options *options, struct query_answer *ret);

#endif

/* no_query.h - for endpoints that take no query parameters.
 *
 * Layer: handlers.  Thread-safe: no state.
 */
#ifndef HANDLERS_QUESTION_NO_QUERY_H
#define HANDLERS_QUESTION_NO_QUERY_H

#include <stdbool.h>

#include "handlers/http/http.h"

/* True if the exchange's request has no parameter.  False: the response is a 400 that names the
 * first one, because a parameter that is passed over would be a promise that is not kept. */
bool no_query(struct http_exchange *exchange);

#endif
